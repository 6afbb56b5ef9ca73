"""`treadle demo`: real processes, a real crash, on a PostgreSQL that comes along.

It checks itself: exit code 0 says that every task ended as the story tells.
"""

import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import typer

from treadle.app import Treadle
from treadle.cli import common, output
from treadle.cli.demo.batch import Batch
from treadle.cli.demo.screen import Screen
from treadle.cli.demo.story import Story
from treadle.cli.processes import embedded_server, until_signal
from treadle.settings import Settings, load_settings, origin


def demo() -> None:
    """See it work: an embedded PostgreSQL, workers, a crash, the recovery.

    \b
    Example: treadle demo
    """
    common.quiet_logs()
    raise typer.Exit(common.run(_main(Screen(output.console()), load_settings())))


async def _main(screen: Screen, settings: Settings) -> int:
    """The exit code: 0 when all went as told, 1 when not, 128 and more for a signal."""
    code = 1
    async with until_signal() as received:
        code = await _demo(screen, settings)
    if received:
        screen.say("■", f"{received[0].name}: everything that the demo started is stopped")
        return 128 + received[0]
    return code


async def _demo(screen: Screen, settings: Settings) -> int:
    screen.title("Treadle: every task is a row in PostgreSQL")
    async with AsyncExitStack() as stack:
        with screen.waiting("starting PostgreSQL …"):
            server = await stack.enter_async_context(embedded_server(settings))
        verb = "started" if server.started_here else "already running"
        screen.say("●", f"PostgreSQL {server.version} {verb} [dim]{server.data_dir}[/]", "green")
        story = Story(screen, server)
        app = await stack.enter_async_context(Treadle(server.url()))
        await story.begin(stack, app)
        with screen.live():
            await story.middle()
        found = await story.end()
    if found:
        screen.title("This did not go as told")
        for problem in found:
            screen.line(f"  [red]✕[/] {problem}")
        screen.line(f"  The logs of the processes are in {story.logs}")
        return 1
    screen.title("Next")
    screen.commands(_next_commands(story.batch, settings))
    return 0


def _next_commands(batch: Batch, settings: Settings) -> list[tuple[str, str]]:
    """What to type next; the data of the demo stay on the embedded server."""
    program = program_name()
    prefix = "TREADLE_EMBEDDED=1"
    if settings.database_url is not None and origin("database_url").startswith("environment"):
        prefix = f"env -u TREADLE_DATABASE_URL -u DATABASE_URL {prefix}"
    return [
        (
            "the dead letter, with its history",
            f"{prefix} {program} dead show {_end(batch.hopeless)}",
        ),
        ("the task that was retried", f"{prefix} {program} tasks show {_end(batch.flaky)}"),
        ("the same processes for daily work; Ctrl-C stops them", f"{program} dev"),
    ]


def _end(task_id: object) -> str:
    return str(task_id)[-12:]


def program_name() -> str:
    """How to call this same treadle from the folder we are in."""
    script = Path(sys.executable).with_name("treadle")
    if not script.is_file():
        return f"{sys.executable} -m treadle"
    found = shutil.which("treadle")
    if found and Path(found).resolve() == script.resolve():
        return "treadle"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
