"""What commands share: their options, the database they work on, and how they run.

Heavy imports stay inside the functions; see `treadle.cli`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from treadle.errors import ConfigurationError, InvalidArgument, TreadleError, Unavailable

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.settings import Settings

T = TypeVar("T")

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="PostgreSQL to use; else TREADLE_DATABASE_URL, DATABASE_URL, treadle.toml.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
HealthFile = Annotated[
    Path | None,
    typer.Option(
        "--health-file", metavar="PATH", help="Write a sign of life here, for supervisors."
    ),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", metavar="FORMAT", help="auto, json or console.")
]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error."),
]
TaskId = Annotated[
    str, typer.Argument(metavar="ID", help="Task id, or its last 6 or more characters.")
]
TaskIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Task ids, or their last 6 or more characters.")
]

# Control characters, and those that turn the direction of writing.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class GlobalOptions:
    """The options before the command, and what follows from the others."""

    database_url: str | None = None
    debug: bool = False
    quiet: bool = False


given = GlobalOptions()


def group(text: str, alone: Callable[[bool, str | None], None] | None = None) -> typer.Typer:
    """A noun whose verbs are added with `@noun.command()`; `alone` is what it does without one."""
    made = typer.Typer(add_completion=False, no_args_is_help=alone is None, rich_markup_mode=None)
    if alone is None:
        made.callback(help=text)(lambda: None)
        return made

    def show(
        ctx: typer.Context, as_json: JsonFlag = False, database_url: DatabaseUrl = None
    ) -> None:
        if ctx.invoked_subcommand is None:
            alone(as_json, database_url)

    made.callback(help=text, invoke_without_command=True)(show)
    return made


@contextmanager
def database(url: str | None = None) -> Iterator[str]:
    """The database to work on; the embedded one only where the settings ask for it."""
    from treadle.settings import load_settings

    settings = load_settings(database_url=url or given.database_url)
    if settings.database_url:
        yield settings.database_url
    elif settings.embedded:
        with _embedded(settings) as found:
            yield found
    else:
        raise ConfigurationError(
            "no database is configured",
            hint="Give --database-url URL, set TREADLE_DATABASE_URL, or try: treadle dev",
        )


def call(work: Callable[[Treadle], Awaitable[T]], url: str | None = None) -> T:
    """Do one thing on the database and come back with its result."""
    quiet_logs()
    with database(url) as found:
        # A plain connection says at once, and in words, why there is none.
        probe(found)
        return run(_inside(found, work))


async def _inside(url: str, work: Callable[[Treadle], Awaitable[T]]) -> T:
    from treadle.app import Treadle

    application = Treadle(url)
    application.one_shot = True
    async with application as app:
        return await work(app)


def run(work: Coroutine[Any, Any, T], *, fast: bool = False) -> T:
    """Run on an event loop that psycopg can use; `fast` is uvloop where it is installed."""
    import asyncio

    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform == "win32":
        factory = asyncio.SelectorEventLoop
    elif fast:
        try:
            import uvloop

            factory = uvloop.new_event_loop
        except ImportError:
            pass
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def probe(url: str, *, within_s: float = 0.0) -> None:
    """Connect once; a process that stays may wait a while for its server to come up.

    A superuser goes on only where the functions and views are those of this release.
    """
    import time

    from treadle.db.install.trust import refuse_replaced_code
    from treadle.db.pool import connect_sync
    from treadle.settings import load_settings

    until = time.monotonic() + within_s
    while True:
        try:
            with connect_sync(url) as conn:
                if load_settings().verify_code:
                    refuse_replaced_code(conn)
            return
        except Unavailable:
            if time.monotonic() >= until:
                raise
        time.sleep(0.5)


def quiet_logs() -> None:
    """For a command that answers: warnings only, on stderr."""
    global given
    from treadle.logs import configure_logging

    given = replace(given, quiet=True)
    configure_logging("auto", "debug" if given.debug else "warning")


def process_logs(log_format: str | None, log_level: str | None) -> Settings:
    """For a process that stays: logs as set; returns the settings."""
    global given
    from treadle.logs import configure_logging
    from treadle.settings import load_settings

    settings = load_settings(
        database_url=given.database_url, log_format=log_format, log_level=log_level
    )
    configure_logging(settings.log_format, settings.log_level)
    if settings.log_level == "debug":
        given = replace(given, debug=True)
    return settings


def health_path(path: Path | None) -> Path | None:
    """The path of a health file, refused at once where it can never be written."""
    if path is not None and not path.absolute().parent.is_dir():
        raise ConfigurationError(
            f"the folder of the health file {path} does not exist", hint="Make it first."
        )
    return path


def known_error(error: BaseException) -> TreadleError | None:
    """The treadle error in an exception, also inside the groups of concurrent tasks."""
    if isinstance(error, TreadleError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(known_error, error.exceptions)), None)
    return None


def note(text: str) -> None:
    """Say something that is not the result."""
    typer.echo(text, err=True)


def printable(value: object) -> str:
    """Text without characters that could steer a terminal; lines stay lines."""
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in "\n\t" else f"\\x{ord(found[0]):02x}", str(value)
    )


def confirm(deed: str, *, yes: bool, dry_run: bool = False) -> None:
    """Ask before something big; without a terminal nobody can answer, so --yes is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgument(
            f"this would {deed}, and there is no terminal to ask at",
            hint="Add --yes to do it without asking"
            + (", or --dry-run to see which." if dry_run else "."),
        )
    typer.confirm(f"{deed.capitalize()}?", abort=True, err=True)


def json_argument(text: str, name: str) -> dict[str, Any]:
    """An object from JSON text, from @file, or from stdin for -."""
    found = json_value(text, name)
    if not isinstance(found, dict):
        raise InvalidArgument(
            f"{name} must be a JSON object, not {type(found).__name__}",
            hint="""Write names and values: '{"n": 1}'""",
        )
    return found


def json_value(text: str, name: str) -> Any:
    """Any value from JSON text, from @file, or from stdin for -."""
    import json

    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise InvalidArgument(f"{error.filename} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"{name} is not JSON: {error}",
            hint="""Quote it for the shell: '{"n": 1}', or use @file.json, or - for stdin.""",
        ) from None


def json_or_text(text: str) -> Any:
    """The value that is written here as JSON, else the text itself."""
    import json

    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def did_you_mean(word: str, known: list[str]) -> str | None:
    """A hint with the nearest of the known words, or with all of them when they are few."""
    from difflib import get_close_matches

    if near := get_close_matches(word, known, n=1):
        return f"Did you mean {near[0]}?"
    return f"It can be: {', '.join(known)}" if 0 < len(known) <= 20 else None


@contextmanager
def _embedded(settings: Settings) -> Iterator[str]:
    from treadle.db.embedded import EmbeddedServer, default_data_dir
    from treadle.db.install.migrate import migrate, status

    with EmbeddedServer(settings.data_dir or default_data_dir()) as server:
        # A process that stays has it in its log.
        if server.started_here and given.quiet:
            note(
                f"embedded PostgreSQL {server.version} at {server.data_dir}:"
                " for development, not production"
            )
        url = server.url()
        if not status(url).current:
            migrate(url)
        yield url


def call_db(work: Callable[[Database], Awaitable[T]], url: str | None) -> T:
    """Call one function of the database."""

    async def inside(app: Treadle) -> T:
        return await work(app.db)

    return call(inside, url)
