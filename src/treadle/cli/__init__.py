"""The command line: `treadle <noun> <verb>`.

The module of a command is imported when the command is used, which keeps help fast: this module
must not import the database, the settings or the logs.
"""

import sys
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treadle.cli import common
from treadle.errors import TreadleError

# Section, command, and the first line of its help. A module defines a command under its own name.
SECTIONS = {
    "Start here": {
        "demo": "Run a demo: an embedded PostgreSQL, workers, a crash and the recovery.",
        "dev": "Run database, server, worker and all services in the foreground for development.",
    },
    "Processes": {
        "worker": "Claim tasks and run their handlers.",
        "reaper": "Take tasks back from workers that crashed, hang or exceed a timeout.",
        "promoter": "Make delayed tasks and retries ready when they are due.",
        "scheduler": "Run schedules when they are due, and triggers when events happen.",
        "pruner": "Archive or drop finished tasks that are older than their queues keep them.",
        "notifier": "Send events to webhooks and Redis streams.",
        "dispatcher": "Send the tasks of queue push to agents and follow each to its end.",
        "harness": "Run the callback for decisions of agents, list its actions, and nudge agents.",
        "server": "Serve the HTTP interfaces: /v1, work API, queue API and harness protocol.",
    },
    "Work": {
        "tasks": "List, show, enqueue, wait for, cancel, retry, prioritise and fork tasks.",
        "dags": "Create, list, show, start, cancel and retry DAGs: tasks that depend on each "
        "other.",
        "waits": "List what tasks wait for, and answer questions.",
        "dead-letters": "List dead letters and decide about them: retry, modify, escalate or "
        "cancel.",
        "artifacts": "List, show and download the files of tasks; sweep files without a task.",
        "archive": "List and show finished tasks that were archived.",
    },
    "Automation": {
        "schedules": "List schedules with their next and last runs; create, run, pause and delete "
        "them.",
        "triggers": "List triggers, which enqueue work on events; create, test, fire, pause and "
        "delete them.",
        "events": "List, follow and emit events.",
        "webhooks": "List webhooks and their deliveries; create, test, pause, rotate and delete "
        "them.",
    },
    "Flow control": {
        "queues": "List queues with their depth; create, update, pause, resume and delete them.",
        "types": "List task types; create, update, pause and resume them.",
        "agents": "List agents; drain one before its host stops; register agents that tasks are "
        "sent to.",
        "projects": "List projects; create them and update their shares of fair queues.",
        "budgets": "List budgets with what is spent and left; set and delete them.",
        "gates": "List gates with their rate limits; create, update, close and open them.",
        "keys": "List concurrency keys and set how many tasks of a key may run at once.",
        "breakers": "List circuit breakers; trip and reset them.",
    },
    "Administration": {
        "db": "Install, upgrade and verify the database schema.",
        "tokens": "Create, list and revoke tokens for the HTTP interfaces.",
        "retention": "List and set how long events, agents and runs are kept.",
        "config": "Show and check the settings.",
        "doctor": "Check the database, the schema, the processes and the artifact store.",
    },
}
# Commands whose module has another name.
MODULES = {
    "demo": "demo.command",
    "reaper": "services",
    "promoter": "services",
    "scheduler": "services",
    "pruner": "services",
    "notifier": "services",
    "dispatcher": "services",
    "server": "services",
    "archive": "retention",
}


class Commands(TyperGroup):
    """Commands that are loaded on use, and errors printed without a traceback."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for section in SECTIONS.values():
            for name, text in section.items():
                self.commands[name] = TyperCommand(name=name, help=text, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(name)), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            known = common.known_error(error)
            if known is None:
                raise
            report(known)
            raise typer.Exit(known.exit_code) from None


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def treadle(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    database_url: common.DatabaseUrl = None,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="TREADLE_DEBUG", help="Print tracebacks of errors.")
    ] = False,
) -> None:
    """Tasks for fleets of agents, stored in PostgreSQL.

    \b
    Examples:
      treadle demo                              see it work; needs nothing else
      treadle worker my_module:app              run the tasks of an application
      treadle tasks list --status running       list the running tasks
    """
    common.options = common.GlobalOptions(database_url=database_url, debug=debug)
    if version:
        from treadle import __version__

        typer.echo(f"treadle {__version__}")
        raise typer.Exit()
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def load(name: str) -> Any:
    """Import the module of a command and return the command."""
    attribute = name.replace("-", "_")
    found = getattr(import_module(f"treadle.cli.{MODULES.get(name, attribute)}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


def report(error: BaseException) -> None:
    """Print an error and its hint on stderr; with --debug also the traceback."""
    if common.options.debug:
        traceback.print_exception(error)
    typer.echo(f"error: {common.printable(error)}", err=True)
    if isinstance(error, TreadleError):
        if error.hint:
            typer.echo(f"hint: {common.printable(error.hint)}", err=True)
    elif not common.options.debug:
        typer.echo(
            "hint: This error was not expected. TREADLE_DEBUG=1 shows the traceback.", err=True
        )


def main() -> None:
    """Run the command line; an unexpected error is printed without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show becomes a question mark.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="treadle")
    except Exception as error:
        report(error)
        sys.exit(1)
