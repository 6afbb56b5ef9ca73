"""The embedded server and the child processes of `treadle demo` and `treadle dev`.

Every child is `treadle` again, in a session of its own: a Ctrl-C in the terminal reaches only us,
and we stop exactly what we started.
"""

import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from subprocess import DEVNULL, STDOUT
from typing import IO

import anyio
import anyio.abc
from anyio import to_thread

from treadle.db.embedded import EmbeddedServer, default_data_dir
from treadle.db.install.migrate import migrate
from treadle.errors import MigrationChanged, SchemaTooNew
from treadle.settings import Settings, child_environment

GRACE_S = 10.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Child:
    """A process that we started."""

    def __init__(self, name: str, process: anyio.abc.Process) -> None:
        self.name = name
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def kill(self) -> None:
        """End it without a chance to say goodbye, and wait until it is gone."""
        with anyio.CancelScope(shield=True):
            self._send(signal.SIGKILL)
            await self.process.wait()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Ask it to end, and wait; after the grace it is killed."""
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
    """Start `treadle` with these arguments and settings, its output to where we say."""
    extra = {f"TREADLE_{key.upper()}": value for key, value in settings.items()}
    process = await anyio.open_process(
        # -P, as for the script `treadle`: a queue.py in this folder is not ours to import.
        [sys.executable, "-P", "-m", "treadle", *arguments],
        stdin=DEVNULL,
        stdout=output,
        stderr=STDOUT,
        # The code was installed by this process a moment ago.
        env=child_environment(TREADLE_VERIFY_CODE="false", **extra, PYTHONUNBUFFERED="1"),
        start_new_session=True,
    )
    return Child(name, process)


async def stop_all(children: Sequence[Child]) -> None:
    """Stop them all at the same time."""
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as stoppers:
            for child in children:
                stoppers.start_soon(child.stop)


@asynccontextmanager
async def embedded_server(
    settings: Settings, say: Callable[[str], None] = lambda _: None
) -> AsyncIterator[EmbeddedServer]:
    """The embedded server with the schema of this code; stopped afterwards if we started it."""
    server = EmbeddedServer(settings.data_dir or default_data_dir())
    try:
        await to_thread.run_sync(server.start)
        await to_thread.run_sync(_migrate, server, say)
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            if server.started_here:
                await to_thread.run_sync(server.stop)


def _migrate(server: EmbeddedServer, say: Callable[[str], None]) -> None:
    try:
        migrate(server.url(), on_step=say)
    except (MigrationChanged, SchemaTooNew) as error:
        raise type(error)(
            f"{server.data_dir} was made by another version of treadle: {error}",
            hint="Leave it alone and take a new folder: TREADLE_DATA_DIR=/tmp/treadle-new",
        ) from None


@asynccontextmanager
async def until_signal() -> AsyncIterator[list[signal.Signals]]:
    """Run a block that SIGINT, SIGTERM and SIGHUP cancel; yields the list of those received.

    While the block cleans up, further signals are noted and nothing more.
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
    """The one error in a group of one; people should not have to read about groups."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
