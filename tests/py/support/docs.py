"""
`make docs`: makes the pages again that are made from the code, on a throw-away server.

    python -m tests.py.support.docs
"""

from __future__ import annotations

from deploy import sql_page
from tests.py.support.clusters import DEFAULT_VERSION, Run
from tests.py.support.schema import ROOT

DATABASE = "aivedio_docs"


def main() -> None:
    """Write docs/sql.md."""
    run = Run.begin()
    try:
        conninfo = run.cluster(DEFAULT_VERSION).create_database(DATABASE)
        page = sql_page.render(sql_page.read(conninfo))
    finally:
        run.end()
    (ROOT / "docs" / "sql.md").write_text(page)


if __name__ == "__main__":
    main()
