"""Where the SQL of this version is: migrations, functions, providers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


class NoTree(Exception):
    """This installation has no db/ folder."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of db/migrations; its version is what dbmate records."""

    version: str
    path: Path
    sha256: bytes


@dataclass(frozen=True)
class Tree:
    """The db/ folder of a source checkout or of an installed package."""

    root: Path

    @cached_property
    def migrations(self) -> list[Migration]:
        """Every migration, oldest first."""
        return [
            Migration(path.name.partition("_")[0], path, hashlib.sha256(path.read_bytes()).digest())
            for path in sorted(self.migrations_folder.glob("*.sql"))
        ]

    @property
    def migrations_folder(self) -> Path:
        """The folder that dbmate reads."""
        return self.root / "migrations"

    @property
    def functions(self) -> list[Path]:
        """Every function file, in the order in which they are applied."""
        return sorted((self.root / "functions").glob("**/*.sql"))

    @property
    def providers(self) -> list[Path]:
        """Every shipped provider profile."""
        return sorted((self.root / "providers").glob("*.sql"))

    def name(self, path: Path) -> str:
        """Return how messages call a file of this tree: db/functions/…"""
        return f"db/{path.relative_to(self.root)}"


def find() -> Tree:
    """Return the tree that belongs to this code; raises NoTree when there is none."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package.parent / "db", package / "db"):
        if (candidate / "migrations").is_dir():
            return Tree(candidate)
    raise NoTree(
        f"No db/migrations folder beside {package}: run from a source checkout, or reinstall."
    )
