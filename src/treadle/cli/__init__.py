"""The command line: `treadle <noun> <verb>`.

A command's module is imported when the command is used, so that help is quick: nothing here may
import the database, the settings or the logs.
"""

import sys
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treadle.cli import common
from treadle.errors import TreadleError

# Section -> command -> first line of its help. The module has the command under its own name.
SECTIONS = {
    "Try it": {
        "demo": "See it work: an embedded PostgreSQL, workers, a crash, the recovery.",
        "dev": "Run database, server, worker and all services in the foreground, for daily work.",
    },
    "Run": {
        "worker": "Claim tasks and run their handlers.",
        "reaper": "Take tasks back from workers that are gone, stuck or too slow.",
        "promoter": "Make tasks claimable when their time has come.",
        "scheduler": "Make the work of schedules when their time has come, and of triggers.",
        "pruner": "Archive or drop finished tasks that are older than their queues keep them.",
        "notifier": "Send events to webhooks and Redis streams.",
        "dispatcher": "Send the tasks of queue push to agents, and follow each to its end.",
        "harness": "Act on the decisions of agents, nudge agents, requeue what is stale.",
        "server": "Serve the HTTP interfaces: work API, queue API, harness protocol, and /v1.",
    },
    "Look and act": {
        "tasks": "List, show, enqueue, cancel, retry, fork and await tasks.",
        "why": "Say why a task is not running: every reason that holds now.",
        "dag": "Make, list, show, start, cancel and retry DAGs: tasks that wait for each other.",
        "waits": "List what tasks wait for: answers of people, and events.",
        "answer": "Answer a question that a task waits for.",
        "emit": "Say that something happened; tasks that wait for it go on.",
        "events": "List what happened, and follow what happens.",
        "triggers": "See what follows from which event; set, test, fire, pause, resume, remove "
        "triggers.",
        "schedules": "See what starts when and how it went; define, run, pause, resume, remove "
        "schedules.",
        "dead": "Decide about tasks that gave up: retry, cancel, change and retry, escalate.",
        "artifacts": "List, show and fetch the files of tasks; sweep those that belong to nobody.",
        "history": "Find finished tasks that were archived; say what is kept how long.",
        "budget": "See what is spent and left; set and remove budgets.",
        "agents": "See who works; add agents that tasks are sent to; drain one before its host "
        "goes.",
        "projects": "List and define projects: whose work it is, and its share in fair queues.",
        "queues": "See how deep queues are; pause, resume and define them; find what is stuck.",
        "types": "List the types of tasks; pause, resume and define them.",
        "gates": "See which gates are closed and how much of a rate limit is used; define, close, "
        "open them.",
        "keys": "See which concurrency keys are full; set how many tasks of a key may run at once.",
        "breakers": "See which types are kept back because their tasks fail; trip and reset "
        "breakers.",
        "webhooks": "See where events are sent and how it goes; add, test, pause, rotate, remove.",
    },
    "Set up": {
        "db": "Install and check the schema.",
        "token": "Say who may use the HTTP interfaces: create, list and revoke tokens.",
        "config": "Show and check the settings.",
        "doctor": "Check everything that a healthy treadle needs.",
    },
}
# Where the module is not called like the command.
MODULES = {
    "demo": "demo.command",
    "reaper": "services",
    "promoter": "services",
    "scheduler": "services",
    "pruner": "services",
    "notifier": "services",
    "dispatcher": "services",
    "server": "services",
    "dag": "dags",
    "answer": "waits",
    "emit": "waits",
    "dead": "dead_letters",
    "history": "retention",
    "budget": "budgets",
    "token": "tokens",
}


class Commands(TyperGroup):
    """Commands that are loaded when they are needed, and errors as people read them."""

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


app = typer.Typer(cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def treadle(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    database_url: common.DatabaseUrl = None,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="TREADLE_DEBUG", help="Show tracebacks of errors.")
    ] = False,
) -> None:
    """Tasks for fleets of agents, kept in the PostgreSQL that you already run.

    \b
    Examples:
      treadle demo                              see it work, nothing else needed
      treadle worker my_module:app              run the tasks of an application
      treadle tasks list --status running       see what is going on
    """
    common.given = common.GlobalOptions(database_url=database_url, debug=debug)
    if version:
        from treadle import __version__

        typer.echo(f"treadle {__version__}")
        raise typer.Exit()
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def load(name: str) -> Any:
    """The real command, from its module."""
    found = getattr(import_module(f"treadle.cli.{MODULES.get(name, name)}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


def report(error: BaseException) -> None:
    """Say on stderr what went wrong and what to do; the traceback only when debugging."""
    if common.given.debug:
        traceback.print_exception(error)
    typer.echo(f"error: {common.printable(error)}", err=True)
    if isinstance(error, TreadleError):
        if error.hint:
            typer.echo(f"hint: {common.printable(error.hint)}", err=True)
    elif not common.given.debug:
        typer.echo("hint: This was not expected. TREADLE_DEBUG=1 shows where it is.", err=True)


def main() -> None:
    """The entry point: like the commands, and no traceback for what was not expected."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="treadle")
    except Exception as error:
        report(error)
        sys.exit(1)
