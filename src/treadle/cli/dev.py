"""`treadle dev`: the embedded PostgreSQL, the server, a worker and all services in one terminal."""

import inspect
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from subprocess import PIPE
from typing import Annotated

import anyio
import typer
from anyio import to_thread

from treadle.app import Treadle
from treadle.cli import common, output
from treadle.cli.demo.command import program_name
from treadle.cli.loader import load_app
from treadle.cli.processes import Child, embedded_server, start_child, until_signal
from treadle.db.embedded import EmbeddedServer
from treadle.errors import ConfigurationError, TreadleError
from treadle.settings import Settings, load_settings, origin

DEMO_APP = "treadle.cli.demo.app:app"
DEMO_TASK = ("summarise", {"document": "Emma", "seconds": 2})
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
# A process that ran this long was well; its next end is not the same trouble again.
WELL_AFTER_S = 10.0
LOOK_AT_SERVER_S = 2.0
LONGEST_LINE = 64 * 1024
# What is tried out is for this host alone, whatever the settings say.
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class DevProcess:
    """A process to keep running, and the colour of its name."""

    name: str
    arguments: Sequence[str]
    style: str


def dev(
    app: Annotated[
        str, typer.Argument(metavar="[MODULE:APP]", help="Your application; else that of the demo.")
    ] = DEMO_APP,
) -> None:
    """Run database, server, worker and all services in the foreground, for daily work.

    \b
    Example:
      treadle dev my_module:app

    The database is the embedded PostgreSQL, and its data stay. Ctrl-C stops everything.
    """
    common.quiet_logs()
    # A wrong path is told here, once, and not by a worker that starts again and again.
    loaded = load_app(app)
    if not loaded.registry.names():
        raise ConfigurationError(
            f"{app} has no tasks", hint="Add one: @app.task() above a function."
        )
    raise typer.Exit(common.run(_main(Terminal(), app, loaded, load_settings())))


class Terminal:
    """Lines of several processes, each behind the name of its process."""

    def line(self, name: str, text: str, style: str) -> None:
        """One line of a process; warnings and errors stand out."""
        loud = {"[warning": "yellow", "[error": "red"}
        body = next((colour for mark, colour in loud.items() if mark in text), "")
        shown = output.plain(f"{name:<10}│ ", style) + output.plain(text, body)
        output.console().print(shown, soft_wrap=True)

    def note(self, text: str) -> None:
        """One line of ours."""
        self.line("dev", text, "bold cyan")


async def _main(terminal: Terminal, path: str, app: Treadle, settings: Settings) -> int:
    """Run until a signal; to be asked to stop is a good end."""
    async with until_signal() as received, embedded_server(settings, terminal.note) as server:
        port = _free_port(settings.port) if _can_serve() else None
        _greet(terminal, server, path, app)
        if port is not None:
            terminal.note(f"HTTP at http://{LOOPBACK}:{port}, described at /docs")
        if settings.database_url is not None:
            terminal.note(f"not used here: the database URL from {origin('database_url')}")
        terminal.note("Ctrl-C stops everything")
        await _run(terminal, server, path, app, port)
    terminal.note(f"{received[0].name}: everything is stopped" if received else "stopped")
    return 0


def _greet(terminal: Terminal, server: EmbeddedServer, path: str, app: Treadle) -> None:
    verb = "started" if server.started_here else "was running already"
    kind, spec = DEMO_TASK if path == DEMO_APP else _example(app)
    terminal.note(f"PostgreSQL {server.version} {verb}: {server.data_dir}")
    terminal.note(f"application {path}, types: {', '.join(app.registry.names())}")
    terminal.note("in another terminal:")
    terminal.note(f"  export TREADLE_DATABASE_URL='{server.url()}'")
    terminal.note(f"  {program_name()} tasks enqueue {kind} '{json.dumps(spec)}' --wait")


def _example(app: Treadle) -> tuple[str, dict[str, object]]:
    """The first type of an application, and the arguments that it must have."""
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


async def _run(
    terminal: Terminal, server: EmbeddedServer, path: str, app: Treadle, port: int | None
) -> None:
    # Said on the command line, this wins over a URL that the application itself names.
    database = ["--database-url", server.url()]
    address = ["--host", LOOPBACK, "--port", str(port)]
    roles = [
        *([DevProcess("server", ["server", *address, *database], "bright_blue")] if port else []),
        DevProcess("worker", ["worker", path, *database], "green"),
        DevProcess("reaper", ["reaper", *database], "yellow"),
        DevProcess("promoter", ["promoter", *database], "magenta"),
        *([DevProcess("scheduler", ["scheduler", *database], "blue")] if _has_cron() else []),
        DevProcess("pruner", ["pruner", *database], "bright_black"),
        *([DevProcess("notifier", ["notifier", *database], "cyan")] if _can_send() else []),
        *(
            [DevProcess("dispatcher", ["dispatcher", *database], "bright_green")]
            if _can_ask()
            else []
        ),
    ]
    queues = dict.fromkeys([*app.settings.queues, *app.registry.queues()])
    settings = {
        "database_url": server.url(),
        "listen_url": server.url(),
        "queues": ",".join(queues),
        "drain_s": "3",
        # For webhooks that say allow_private: what is tried out here runs on this host.
        "webhook_private": "1",
    }
    if app.settings.log_format == "auto":
        settings["log_format"] = "console"
    async with anyio.create_task_group() as keepers:
        for role in roles:
            keepers.start_soon(_keep, terminal, role, settings)
        keepers.start_soon(_keep_server, terminal, server)


def _can_serve() -> bool:
    """Whether the extra of the server is installed."""
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


def _free_port(wanted: int) -> int:
    """The port of the settings, or any other where that is taken."""
    with socket.socket() as probe:
        # As the server will: what the last one left behind does not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError:
            probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _has_cron() -> bool:
    """Whether the extra that schedules need is installed."""
    return find_spec("cronsim") is not None


def _can_send() -> bool:
    """Whether an extra is installed that the notifier sends with."""
    return any(find_spec(name) is not None for name in ("httpx2", "redis"))


def _can_ask() -> bool:
    """Whether the extra is installed that the dispatcher speaks to agents with."""
    return find_spec("httpx2") is not None


async def _keep(terminal: Terminal, role: DevProcess, settings: Mapping[str, str]) -> None:
    """Keep a process running: when it ends, start it again, later each time."""
    pause = FIRST_PAUSE_S
    while True:
        began = anyio.current_time()
        child = await start_child(role.name, role.arguments, settings=settings, output=PIPE)
        reading = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as readers:
            readers.start_soon(_show_lines, terminal, role, child, reading)
            try:
                code = await child.process.wait()
            finally:
                await child.stop()
                # Its last words are read; a pipe that its own children keep open is not waited for.
                reading.deadline = anyio.current_time() + 1
        if anyio.current_time() - began > WELL_AFTER_S:
            pause = FIRST_PAUSE_S
        terminal.note(f"{role.name} ended with code {code}; it starts again in {pause:g} s")
        await anyio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


async def _show_lines(
    terminal: Terminal, role: DevProcess, child: Child, reading: anyio.CancelScope
) -> None:
    """Print what a process writes, line by line, until it closes its output."""
    rest = b""
    with reading:
        assert child.process.stdout is not None
        async for chunk in child.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                terminal.line(role.name, line.decode(errors="replace"), role.style)
    if rest:
        terminal.line(role.name, rest.decode(errors="replace"), role.style)


async def _keep_server(terminal: Terminal, server: EmbeddedServer) -> None:
    """Whoever started the server may stop it while we work: then we start it."""
    while True:
        await anyio.sleep(LOOK_AT_SERVER_S)
        if await to_thread.run_sync(lambda: server.running):
            continue
        terminal.note("PostgreSQL is gone; starting it again")
        try:
            await to_thread.run_sync(server.start)
        except TreadleError as error:
            terminal.note(f"PostgreSQL did not start: {error}")
