"""`aivedio providers`: what can be checked about providers without asking them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

app = typer.Typer(help="Check what we know of providers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Check what we know of providers."""


@app.command()
def vectors(
    file: Annotated[Path, typer.Argument(help="JSON with a list of vectors.", show_default=False)],
) -> None:
    """Run known webhook signatures against our verifiers; exit 1 if they disagree."""
    from edge.intake import vectors as known

    try:
        judged = known.judge_all(orjson.loads(file.read_bytes()))
    except (OSError, orjson.JSONDecodeError, known.BadVectors) as error:
        sys.stderr.write(f"{file} cannot be used: {error}\n")
        raise typer.Exit(2) from None

    wrong = [one for one in judged if one.agrees is False]
    for one in wrong:
        typer.echo(f"{one.name}  {one.scheme}: expected {one.expected}, judged {one.verdict}")
    free = sum(one.agrees is None for one in judged)
    typer.echo(
        f"{len(judged)} vectors: {len(judged) - free - len(wrong)} agree, {free} may be judged"
        f" either way, {len(wrong)} disagree"
    )
    raise typer.Exit(1 if wrong else 0)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A shipped profile.", show_default=False)],
    database: Annotated[
        str | None,
        typer.Option(
            help="A database of its own, which is migrated and then full of jobs.",
            envvar="AIVEDIO_CHECK_DATABASE_URL",
            show_default="one that is made for it",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds until what has not happened never will.")
    ] = 60.0,
) -> None:
    """Put a shipped profile to the test against a provider that pretends; exit 1 on a failure."""
    from edge.cli import check as bench

    raise typer.Exit(bench.check(name, database, timeout))
