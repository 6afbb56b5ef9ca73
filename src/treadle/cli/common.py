"""What commands share: options, the database, messages, and how values are read.

Heavy imports stay inside the functions; see `treadle.cli`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from treadle.cli import completion
from treadle.errors import ConfigurationError, InvalidArgument, TreadleError, Unavailable

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.settings import Settings

T = TypeVar("T")
Command = Callable[..., None]


def strip_ellipsis(text: str) -> str:
    """An id without the ellipsis that stands before a short one in a table."""
    return text.lstrip("….")


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="PostgreSQL to use; default: TREADLE_DATABASE_URL, DATABASE_URL, treadle.toml.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would change.")]
Limit = Annotated[
    int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="Rows at most.")
]
IdsOnly = Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Reason, kept for the record.")
]
Actor = Annotated[
    str | None,
    typer.Option("--actor", metavar="NAME", help="Acting person or program; default: the login."),
]
HealthFile = Annotated[
    Path | None,
    typer.Option(
        "--health-file", metavar="PATH", help="File to touch while healthy, for supervisors."
    ),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", metavar="FORMAT", help="auto, json or console.")
]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name, as listed.")]
TaskId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Task id, or its last 6 or more characters.",
        parser=strip_ellipsis,
        autocompletion=completion.task_ids,
    ),
]
OfTask = Annotated[
    str | None,
    typer.Option("--task", metavar="ID", help="Only of this task.", parser=strip_ellipsis),
]
OfQueue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="QUEUE",
        help="Only in this queue.",
        autocompletion=completion.queues,
    ),
]
OfType = Annotated[
    str | None,
    typer.Option(
        "--type", metavar="TYPE", help="Only of this type.", autocompletion=completion.types
    ),
]

# Changing more tasks than this at once needs a confirmation.
CONFIRM_ABOVE = 100
# Control characters, and those that change the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True)
class GlobalOptions:
    """The options that every command takes, before the noun or after the verb."""

    database_url: str | None = None
    json: bool = False
    debug: bool = False
    quiet: bool = False


options = GlobalOptions()


def command(*, json: bool = True, database: bool = True) -> Callable[[Command], Command]:
    """Add --json and --database-url to a command; both become global options."""
    added = {"as_json": (JsonFlag, False, json), "database_url": (DatabaseUrl, None, database)}

    def decorate(function: Command) -> Command:
        own = inspect.signature(function, eval_str=True)

        @wraps(function)
        def run(*, as_json: bool = False, database_url: str | None = None, **given: Any) -> None:
            global options
            options = replace(
                options, json=as_json, database_url=database_url or options.database_url
            )
            function(**given)

        run.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[
                *(each.replace(kind=each.KEYWORD_ONLY) for each in own.parameters.values()),
                *(
                    inspect.Parameter(
                        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
                    )
                    for name, (annotation, default, wanted) in added.items()
                    if wanted
                ),
            ]
        )
        return run

    return decorate


# The database, and the processes that stay


@contextmanager
def database(default: str | None = None) -> Iterator[str]:
    """The URL of the database; the embedded one only where the settings ask for it."""
    from treadle.settings import load_settings, warn_about_unknown_settings

    settings = load_settings(database_url=options.database_url or default)
    warn_about_unknown_settings()
    if settings.database_url:
        yield settings.database_url
    elif settings.embedded:
        with _embedded(settings) as found:
            yield found
    else:
        raise ConfigurationError(
            "no database is configured",
            hint="Pass --database-url URL, set TREADLE_DATABASE_URL, or run: treadle dev",
        )


@contextmanager
def _embedded(settings: Settings) -> Iterator[str]:
    from treadle.db.embedded import EmbeddedServer, default_data_dir
    from treadle.db.install.migrate import migrate, status

    with EmbeddedServer(settings.data_dir or default_data_dir()) as server:
        # A process that stays has it in its log.
        if server.started_here and options.quiet:
            note(
                f"embedded PostgreSQL {server.version} at {server.data_dir}:"
                " for development, not production"
            )
        url = server.url()
        if not status(url).current:
            migrate(url)
        yield url


def call(work: Callable[[Treadle], Awaitable[T]]) -> T:
    """Do one thing with an application on the database, and return its result."""
    quiet_logs()
    with database() as url:
        # A plain connection fails at once and says why, where a pool would retry.
        probe(url)
        return run(_call(url, work))


async def _call(url: str, work: Callable[[Treadle], Awaitable[T]]) -> T:
    from treadle.app import Treadle

    application = Treadle(url)
    application.one_shot = True
    async with application as app:
        return await work(app)


def call_db(work: Callable[[Database], Awaitable[T]]) -> T:
    """Do one thing on the database, and return its result."""
    return call(lambda app: work(app.db))


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
    """Connect once; a process that stays may wait for its server to come up.

    A superuser continues only where the functions and views are those of this release.
    """
    import time

    from treadle.db.connection import connect_sync
    from treadle.db.install.trust import refuse_replaced_code
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
    """Log warnings only, on stderr: for a command that prints a result."""
    global options
    from treadle.logs import configure_logging

    options = replace(options, quiet=True)
    configure_logging("auto", "debug" if options.debug else "warning")


@dataclass(frozen=True)
class Process:
    """What a process that stays is started with."""

    settings: Settings
    health_file: Path | None


def process_options(
    health_file: HealthFile = None, log_format: LogFormat = None, log_level: LogLevel = None
) -> Process:
    """The options of a process that stays; logging is configured with them."""
    settings = process_logs(log_format, log_level)
    if health_file is not None and not health_file.absolute().parent.is_dir():
        raise ConfigurationError(
            f"the folder of the health file {health_file} does not exist", hint="Create it first."
        )
    return Process(settings, health_file)


def logging_options(log_format: LogFormat = None, log_level: LogLevel = None) -> Process:
    """The options of a process that has no health file."""
    return Process(process_logs(log_format, log_level), None)


def process_logs(log_format: str | None, log_level: str | None) -> Settings:
    """Configure the logs of a process that stays, and return the settings."""
    global options
    from treadle.logs import configure_logging
    from treadle.settings import load_settings, warn_about_unknown_settings

    settings = load_settings(
        database_url=options.database_url, log_format=log_format, log_level=log_level
    )
    configure_logging(settings.log_format, settings.log_level)
    warn_about_unknown_settings()
    if settings.log_level == "debug":
        options = replace(options, debug=True)
    return settings


# Errors and messages


def known_error(error: BaseException) -> TreadleError | None:
    """The treadle error in an exception, also inside the groups of concurrent tasks."""
    if isinstance(error, TreadleError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(known_error, error.exceptions)), None)
    return None


def note(text: str) -> None:
    """Print a message that is not the result."""
    typer.echo(text, err=True)


def printable(value: object) -> str:
    """Text with control characters escaped, except line ends and tabs."""
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in "\n\t" else f"\\x{ord(found[0]):02x}", str(value)
    )


def confirm(action: str, *, yes: bool, dry_run: bool = False) -> None:
    """Ask for confirmation; without a terminal, --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgument(
            f"this would {action}, and there is no terminal to confirm it",
            hint="Add --yes to do it without confirmation"
            + (", or --dry-run to see what would change." if dry_run else "."),
        )
    typer.confirm(f"{action.capitalize()}?", abort=True, err=True)


def did_you_mean(word: str, known: list[str]) -> str | None:
    """A hint with the nearest of the known words, or with all of them when they are few."""
    from difflib import get_close_matches

    begun = [each for each in known if word and each.startswith(word)]
    if near := begun or get_close_matches(word, known, n=1):
        return f"Did you mean {near[0]}?"
    return f"It can be: {', '.join(known)}" if 0 < len(known) <= 20 else None


# Reading values


def named(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given a value."""
    return {name: value for name, value in settings.items() if value is not None}


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
    """The value that the text is in JSON, otherwise the text itself."""
    import json

    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return text


def _reject_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def assignments(pairs: list[str], example: str) -> dict[str, Any]:
    """The values of `--set NAME=VALUE`; a value that is not JSON is text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidArgument(
                f"--set {pair!r} is not NAME=VALUE",
                hint=f"For example: --set {example}",
                argument="set",
            )
        if name in found:
            raise InvalidArgument(
                f"--set {name} is given twice", hint="Give it once.", argument="set"
            )
        found[name] = json_or_text(value)
    return found


def parse_age(text: str, name: str) -> float | None:
    """The seconds of an age such as 30d or 12h; None for `forever`."""
    if text == "forever":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text.strip())
    if found is None:
        raise InvalidArgument(
            f"{name} is not an age: {text!r}",
            hint="Write 30d, 12h, 90m, 45s or a number of seconds; forever keeps everything.",
            argument=name,
        )
    return float(found[1]) * _SECONDS[found[2]]


def parse_time(text: str, name: str) -> datetime | timedelta:
    """A time with its zone, or a distance from now: 90s, 45m, 2h, 1d, 1w."""
    if found := re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smhdw])", text):
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidArgument(
            f"{name} is not a time: {text!r}",
            hint="Write 45m, 2h or 1d, or a time with its zone: 2027-01-31T17:00+01:00",
            argument=name,
        )
    return at


def time_before(text: str | None, name: str) -> datetime | None:
    """A time in the past, given as such or as an age."""
    if text is None:
        return None
    found = parse_time(text, name)
    return datetime.now(tz=UTC) - found if isinstance(found, timedelta) else found


def seconds_until(text: str | None, name: str) -> float | None:
    """The seconds until a time, given as such or as a delay."""
    if text is None:
        return None
    found = parse_time(text, name)
    delay = found if isinstance(found, timedelta) else found - datetime.now(tz=UTC)
    return max(0.0, delay.total_seconds())
