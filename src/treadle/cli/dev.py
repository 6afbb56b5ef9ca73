"""`treadle dev`: a database, the server, a worker and all services in one terminal.

`treadle demo` starts its processes in the same way. Every child is `treadle` in a session of its
own, so that Ctrl-C in the terminal reaches only the parent, which stops its children.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import IO, Annotated

import anyio
import anyio.abc
import typer
from anyio import to_thread

from treadle.app import Treadle
from treadle.cli import common, output
from treadle.cli.worker import load_app
from treadle.db.connection import mask_password
from treadle.db.embedded import EmbeddedServer, default_data_dir
from treadle.db.install.migrate import migrate
from treadle.errors import ConfigurationError, MigrationChanged, SchemaTooNew, TreadleError
from treadle.settings import Settings, child_environment, load_settings, origin

DEMO_APP = "treadle.cli.demo.app:app"
DEMO_TASK = ("summarise", {"document": "Emma", "seconds": 2})
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0
# A process that ran this long is considered healthy, and restarts without a longer pause.
HEALTHY_AFTER_S = 10.0
CHECK_SERVER_S = 2.0
CHECK_FILES_S = 0.5
MAX_LINE_LENGTH = 64 * 1024
# Development processes listen on loopback only, whatever the settings say.
LOOPBACK = "127.0.0.1"
GRACE_S = 10.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class DevProcess:
    """A process to keep running, and the colour of its name in the output."""

    name: str
    arguments: Sequence[str]
    style: str


def dev(
    app: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="Application to run; default: the demo.")
    ] = DEMO_APP,
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart the worker when Python files change.")
    ] = False,
) -> None:
    """Run database, server, worker and all services in the foreground for development.

    \b
    Examples:
      treadle dev my_module:app
      treadle dev my_module:app --reload

    The database is that of the settings, such as TREADLE_DATABASE_URL. Without one it is an
    embedded PostgreSQL, which keeps its data, one for each working folder. The server uses port
    8420, or another one if that is taken. Ctrl-C stops everything.
    """
    common.quiet_logs()
    # Report a wrong path once here, not from a worker that restarts again and again.
    loaded = load_app(app)
    if not loaded.registry.names():
        raise ConfigurationError(f"{app} has no tasks", hint="Add one: @app.task above a function.")
    settings = load_settings(database_url=common.options.database_url)
    raise typer.Exit(common.run(_main(Terminal(), app, loaded, settings, reload=reload)))


class Terminal:
    """Prints the output of several processes, each line after the name of its process."""

    def line(self, name: str, text: str, style: str) -> None:
        """Print a line of a process; warnings and errors are coloured."""
        loud = {"[warning": "yellow", "[error": "red"}
        body = next((colour for mark, colour in loud.items() if mark in text), "")
        shown = output.plain(f"{name:<10}│ ", style) + output.plain(text, body)
        output.console().print(shown, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a message of `treadle dev` itself."""
        self.line("dev", text, "bold cyan")


async def _main(
    terminal: Terminal, path: str, app: Treadle, settings: Settings, *, reload: bool
) -> int:
    """Run until a signal, which is a successful end."""
    async with until_signal() as received, AsyncExitStack() as stack:
        server = None
        url = settings.database_url
        if url is None:
            server = await stack.enter_async_context(embedded_server(settings, terminal.note))
            url = server.url()
            verb = "started" if server.started_here else "was running already"
            terminal.note(f"PostgreSQL {server.version} {verb}: {server.data_dir}")
        else:
            # Not migrated here: it may be the database of others. This checks its schema.
            async with Treadle(url) as checked:
                await checked.db.calls.open()
            shown = common.printable(mask_password(url))
            terminal.note(f"database {shown}, from {origin('database_url')}")
        port = _free_port(settings.port) if _can_serve() else None
        roles = _roles(path, url, port)
        kind, spec = DEMO_TASK if path == DEMO_APP else _example(app)
        terminal.note(f"application {path}, types: {', '.join(app.registry.names())}")
        terminal.note(f"processes: {', '.join(role.name for role in roles)}")
        terminal.note("in another terminal:")
        if server is not None:
            terminal.note(f"  export TREADLE_DATABASE_URL='{url}'")
        terminal.note(f"  {program_name()} tasks enqueue {kind} '{json.dumps(spec)}' --wait")
        if port is not None:
            terminal.note(f"HTTP at http://{LOOPBACK}:{port}, documentation at /docs")
        terminal.note("Ctrl-C stops everything")
        changed = Changes(Path.cwd()) if reload else None
        async with anyio.create_task_group() as processes:
            for role in roles:
                watched = changed if role.name == "worker" else None
                processes.start_soon(
                    _keep_running, terminal, role, _child_settings(app, url), watched
                )
            if server is not None:
                processes.start_soon(_keep_server, terminal, server)
    terminal.note(f"{received[0].name}: everything is stopped" if received else "stopped")
    return 0


def _example(app: Treadle) -> tuple[str, dict[str, object]]:
    """The first type of an application, with its required arguments."""
    name = app.registry.names()[0]
    definition = app.registry.get(name)
    parameters = inspect.signature(definition.handler).parameters if definition else {}
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty
        and each.kind is not each.VAR_KEYWORD
        and definition is not None
        and each.name != definition.context_name
    ]
    return name, dict.fromkeys(needed, "...")


def _roles(path: str, url: str, port: int | None) -> list[DevProcess]:
    """The processes to run, without those whose extras are not installed."""
    # On the command line, this has precedence over the URL in the code of the application.
    database = ["--database-url", url]
    address = ["--host", LOOPBACK, "--port", str(port)]
    return [
        *([DevProcess("server", ["server", *address, *database], "bright_blue")] if port else []),
        DevProcess("worker", ["worker", path, *database], "green"),
        DevProcess("reaper", ["reaper", *database], "yellow"),
        DevProcess("promoter", ["promoter", *database], "magenta"),
        *([DevProcess("scheduler", ["scheduler", *database], "blue")] if _has_cron() else []),
        DevProcess("pruner", ["pruner", *database], "bright_black"),
        *([DevProcess("notifier", ["notifier", *database], "cyan")] if _can_notify() else []),
        *(
            [DevProcess("dispatcher", ["dispatcher", *database], "bright_green")]
            if _can_dispatch()
            else []
        ),
    ]


def _child_settings(app: Treadle, url: str) -> dict[str, str]:
    registry = app.registry
    queues = dict.fromkeys(
        [*app.settings.queues, *registry.queues(), *sorted(registry.declared_queues)]
    )
    settings = {
        "database_url": url,
        "listen_url": app.settings.listen_url or url,
        "queues": ",".join(queues),
        "drain_s": "3",
        # Webhooks that allow private addresses may point to this host.
        "webhook_private": "1",
    }
    if app.settings.log_format == "auto":
        settings["log_format"] = "console"
    return settings


def _can_serve() -> bool:
    """Whether the extra for the server is installed."""
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


def _free_port(wanted: int) -> int:
    """The port in the settings, or any free port if that is taken."""
    with socket.socket() as probe:
        # Like the server: connections of a previous one in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError:
            probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _has_cron() -> bool:
    """Whether the extra for schedules is installed."""
    return find_spec("cronsim") is not None


def _can_notify() -> bool:
    """Whether an extra for the notifier is installed."""
    return any(find_spec(name) is not None for name in ("httpx2", "redis"))


def _can_dispatch() -> bool:
    """Whether the extra for the dispatcher is installed."""
    return find_spec("httpx2") is not None


class Changes:
    """Notices changes of the Python files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._files()

    def take(self) -> str | None:
        """Return a file that was changed, added or removed since the last call."""
        before, self._seen = self._seen, self._files()
        changed = set(before.items()) ^ set(self._seen.items())
        return min((name for name, _ in changed), default=None)

    def _files(self) -> dict[str, int]:
        found = {}
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [
                name
                for name in folders
                if not name.startswith((".", "__")) and name not in ("venv", "node_modules")
            ]
            for name in files:
                if name.endswith(".py"):
                    path = Path(folder, name)
                    with suppress(FileNotFoundError):
                        found[str(path.relative_to(self._folder))] = path.stat().st_mtime_ns
        return found


async def _watch(
    terminal: Terminal, child: Child, changes: Changes, watching: anyio.CancelScope
) -> None:
    """Stop a process when a file changes; the caller starts it again."""
    with watching:
        changed = None
        while changed is None:
            await anyio.sleep(CHECK_FILES_S)
            changed = await to_thread.run_sync(changes.take)
        terminal.note(f"{changed} has changed; restarting the {child.name}")
        child.reloaded = True
        await child.stop()


async def _keep_running(
    terminal: Terminal, role: DevProcess, settings: Mapping[str, str], changes: Changes | None
) -> None:
    """Restart a process whenever it ends, with growing pauses, or at once if files changed."""
    pause = FIRST_PAUSE_S
    while True:
        began = anyio.current_time()
        child = await start_child(role.name, role.arguments, settings=settings, output=PIPE)
        reading = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as readers:
            readers.start_soon(_show_lines, terminal, role, child, reading)
            watching = anyio.CancelScope()
            if changes is not None:
                readers.start_soon(_watch, terminal, child, changes, watching)
            try:
                code = await child.process.wait()
            finally:
                watching.cancel()
                await child.stop()
                # Read its last lines, but do not wait for a pipe that its own children keep open.
                reading.deadline = anyio.current_time() + 1
        if child.reloaded:
            pause = FIRST_PAUSE_S
            continue
        if anyio.current_time() - began > HEALTHY_AFTER_S:
            pause = FIRST_PAUSE_S
        terminal.note(f"{role.name} ended with code {code}; restarting it in {pause:g} s")
        await anyio.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_S)


async def _show_lines(
    terminal: Terminal, role: DevProcess, child: Child, reading: anyio.CancelScope
) -> None:
    """Print the lines that a process writes until it closes its output."""
    rest = b""
    with reading:
        assert child.process.stdout is not None
        async for chunk in child.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE_LENGTH:
                lines, rest = [*lines, rest], b""
            for line in lines:
                terminal.line(role.name, line.decode(errors="replace"), role.style)
    if rest:
        terminal.line(role.name, rest.decode(errors="replace"), role.style)


async def _keep_server(terminal: Terminal, server: EmbeddedServer) -> None:
    """Start the server again if another process stops it."""
    while True:
        await anyio.sleep(CHECK_SERVER_S)
        if await to_thread.run_sync(lambda: server.running):
            continue
        terminal.note("PostgreSQL has stopped; starting it again")
        try:
            await to_thread.run_sync(server.start)
        except TreadleError as error:
            terminal.note(f"PostgreSQL did not start: {error}")


def program_name() -> str:
    """The command that runs this treadle from the working folder."""
    script = Path(sys.executable).with_name("treadle")
    if not script.is_file():
        return f"{sys.executable} -m treadle"
    found = shutil.which("treadle")
    if found and Path(found).resolve() == script.resolve():
        return "treadle"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


class Child:
    """A child process."""

    def __init__(self, name: str, process: anyio.abc.Process) -> None:
        self.name = name
        self.process = process
        self.reloaded = False

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def kill(self) -> None:
        """Send SIGKILL and wait until the process has ended."""
        with anyio.CancelScope(shield=True):
            self._send(signal.SIGKILL)
            await self.process.wait()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Send SIGTERM and wait; after the grace period, kill the process."""
        with anyio.CancelScope(shield=True):
            if self.alive:
                self._send(signal.SIGTERM)
                with anyio.move_on_after(grace_s):
                    await self.process.wait()
                await self.kill()

    def _send(self, number: signal.Signals) -> None:
        if self.alive:
            self.process.send_signal(number)


async def start_child(
    name: str,
    arguments: Sequence[str],
    *,
    settings: Mapping[str, str],
    output: int | IO[bytes],
) -> Child:
    """Start `treadle` with these arguments and settings."""
    extra = {f"TREADLE_{key.upper()}": value for key, value in settings.items()}
    process = await anyio.open_process(
        # -P as for the script `treadle`: modules of the working folder must not shadow others.
        [sys.executable, "-P", "-m", "treadle", *arguments],
        stdin=DEVNULL,
        stdout=output,
        stderr=STDOUT,
        # The parent has just installed the code.
        env=child_environment(TREADLE_VERIFY_CODE="false", **extra, PYTHONUNBUFFERED="1"),
        start_new_session=True,
    )
    return Child(name, process)


async def stop_all(children: Sequence[Child]) -> None:
    """Stop all children concurrently."""
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as stoppers:
            for child in children:
                stoppers.start_soon(child.stop)


@asynccontextmanager
async def embedded_server(
    settings: Settings, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[EmbeddedServer]:
    """The embedded server with the current schema; stopped afterwards if it was started here."""
    server = EmbeddedServer(settings.data_dir or default_data_dir())
    try:
        await to_thread.run_sync(server.start)
        await to_thread.run_sync(_migrate, server, on_step)
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            if server.started_here:
                await to_thread.run_sync(server.stop)


def _migrate(server: EmbeddedServer, on_step: Callable[[str], None]) -> None:
    try:
        migrate(server.url(), on_step=on_step)
    except (MigrationChanged, SchemaTooNew) as error:
        raise type(error)(
            f"{server.data_dir} was created by another version of treadle: {error}",
            hint="Use another folder: TREADLE_DATA_DIR=/tmp/treadle-new",
        ) from None


@asynccontextmanager
async def until_signal() -> AsyncIterator[list[signal.Signals]]:
    """Run a block that SIGINT, SIGTERM and SIGHUP cancel; yields the received signals.

    Signals that arrive while the block cleans up are only added to the list.
    """
    received: list[signal.Signals] = []
    block = anyio.CancelScope()

    async def wait(task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                received.append(signal.Signals(number))
                block.cancel()

    try:
        async with anyio.create_task_group() as waiter:
            await waiter.start(wait)
            with block:
                yield received
            waiter.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _only_one(group) from None


def _only_one(error: BaseException) -> BaseException:
    """The error inside a group of one, which reads better than the group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
