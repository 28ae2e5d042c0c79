"""
The command line `aivedio`.

For people: `up`, `migrate`, `status`, `doctor`, `replay`, `operator-link`, `providers`,
`topics`, `settings`, `version`. For service managers: one sub-command per process, each
configured by AIVEDIO_ variables, logging JSON to stderr.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from edge.cli import providers, settings as _settings
from edge.cli.processes import PROCESSES, Process

app = typer.Typer(
    name="aivedio",
    help="Carries the state of AI video jobs from their providers to the browser.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(providers.app, name="providers")


def main() -> None:
    """Run the command line."""
    try:
        app()
    except _settings.BadSettings as error:
        _fail(str(error), 2)


@app.command()
def up(
    data: Annotated[
        Path | None, typer.Option(help="Folder to keep everything in.", show_default=False)
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep nothing: use a temporary folder.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the page.", show_default="8080 or a free one"),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Run scripted jobs, print one JSON line, and end.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=10_000, help="With --once: how many.")] = 1,
    faults: Annotated[
        Literal["all", "none"], typer.Option(help="With --once: what goes wrong on the way.")
    ] = "none",
    timeout: Annotated[
        float, typer.Option(min=1, help="With --once: seconds until the run has failed.")
    ] = 120.0,
) -> None:
    """Run all of it on this machine: servers, every process, a pretend provider, the page."""
    from edge.cli import up as everything
    from edge.cli.session import Options

    if ephemeral and data is not None:
        raise typer.BadParameter("--ephemeral keeps nothing, so --data has no meaning with it")
    if once:
        from edge.pretend import scenarios

        try:
            scenarios.check(jobs, faults)
        except ValueError as error:
            raise typer.BadParameter(f"--jobs {jobs}: {error}") from None
    options = Options(data, ephemeral, port, once, jobs, faults, timeout)
    raise typer.Exit(everything.up(options, _settings.load()))


@app.command()
def migrate(
    lock_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for another migration.")
    ] = 60.0,
) -> None:
    """Bring the database to this version."""
    from edge.cli import migrate as migration
    from edge.cli.processes import database_url
    from edge.cli.tree import NoTree

    settings = _settings.load()
    _settings.required(settings, "database_url")
    try:
        migration.migrate(database_url(settings), typer.echo, lock_timeout=lock_timeout)
    except (migration.CannotMigrate, NoTree) as error:
        _fail(str(error), 1)


topics = typer.Typer(help="The topic and the groups of a RocketMQ cluster.", no_args_is_help=True)
app.add_typer(topics, name="topics")


@topics.command("create")
def create_topics() -> None:
    """Make the topic and the consumer groups, with the right types; again changes nothing."""
    from edge import errors
    from edge.cli import topics as cluster
    from edge.cli.processes import database_url
    from relay.rocketmq_topics import CannotCreate

    settings = _settings.load()
    _settings.required(settings, "database_url", "rocketmq_endpoints", "rocketmq_name_servers")
    try:
        cluster.create(database_url(settings), settings, typer.echo)
    except CannotCreate as error:
        _fail(str(error), 1)
    except errors.EdgeError as error:
        _fail(f"The database does not answer: {error}", 1)


@app.command()
def status() -> None:
    """Show what the pipeline is doing."""
    from edge.cli import status as pipeline
    from edge.cli.processes import database_url

    settings = _settings.load()
    _settings.required(settings, "database_url")
    raise typer.Exit(pipeline.show(database_url(settings)))


@app.command()
def doctor() -> None:
    """Look at this installation and say what is wrong with it, and what to do."""
    from edge.cli import doctor as examination

    settings = _settings.load()
    _settings.required(settings, "database_url")
    raise typer.Exit(examination.show(settings))


@app.command()
def replay(
    callback: Annotated[int, typer.Argument(help="Its id in provider_callback_inbox.")],
    why: Annotated[str, typer.Option(help="The reason, kept in the audit.")] = "rehearsal",
    who: Annotated[str, typer.Option(envvar="USER", help="Who asks, kept in the audit.")] = "cli",
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it, if it is dead or waits; else only rehearse.")
    ] = False,
) -> None:
    """Show what a stored callback would do now, or apply it."""
    from edge.cli import replay as callbacks
    from edge.cli.processes import database_url

    settings = _settings.load()
    _settings.required(settings, "database_url")
    if apply and why == "rehearsal":
        raise typer.BadParameter("--apply needs --why")
    raise typer.Exit(callbacks.show(database_url(settings), callback, who, why, apply=apply))


@app.command("operator-link")
def operator_link(
    role: Annotated[
        Literal["read", "act"], typer.Option(help="May look, or may also act.")
    ] = "read",
    who: Annotated[
        str, typer.Option(envvar="USER", help="Whose link it is, kept in the audit.")
    ] = "operator",
) -> None:
    """Make a link that logs an operator in once, within ten minutes."""
    from edge.cli import operator_link as links
    from edge.cli.processes import console_url, database_url

    settings = _settings.load()
    _settings.required(settings, "database_url")
    raise typer.Exit(links.show(database_url(settings), console_url(settings), role, who))


@app.command()
def settings() -> None:
    """List the AIVEDIO_ variables, what each means, and which are set."""
    for line in _settings.listing(_settings.load()):
        typer.echo(line)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(metadata.version("aivedio-control"))


def _add(process: Process) -> None:
    def run_process() -> None:
        _live(process, _settings.load())

    def run_consumers(
        group: Annotated[
            list[str] | None,
            typer.Option(help="One of its groups; repeat it for several.", show_default="all"),
        ] = None,
    ) -> None:
        settings = _settings.load()
        if group:
            settings.consume_groups = group
        _live(process, settings)

    command = run_consumers if process.name == "consume" else run_process
    app.command(process.name, help=process.help, hidden=process.hidden)(command)


def _live(process: Process, settings: _settings.Settings) -> NoReturn:
    from edge import process as life

    _leave(
        life.run(
            process.name,
            process.main(settings),
            admin_port=settings.admin_port,
            admin_host=settings.admin_host,
            log_level=settings.log_level,
            stop_within=settings.drain_seconds + process.winds_up,
        )
    )


for _process in PROCESSES.values():
    _add(_process)


def _fail(text: str, status: int) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.exit(status)


def _leave(status: int) -> NoReturn:
    # All is closed by now, and taking an interpreter apart takes longer than stopping did.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
