"""What is built to be installed has everything that runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_wheel_holds_the_sql_and_the_page(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)),
        ],
        check=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "db").rglob("*.sql"):
        assert f"edge/{path.relative_to(ROOT)}" in held
    for package in ("edge", "relay"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(ROOT)) in held
    assert not [name for name in held if name.startswith(("tests/", "docs/", "db/"))]
