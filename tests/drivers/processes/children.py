"""Start real treadle processes, read their logs, signal them, and wait for what they do."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import psycopg

from tests.drivers.processes.fork_server import Fork, forks
from treadle.worker import loop

ROOT = Path(__file__).resolve().parents[3]
APP = "tests.drivers.apps.naps:app"
# `constants` of a worker that finds the next task by its poll or by a notification only.
NO_QUICK_POLLS = [(loop, "QUICK_POLLS_S", [0.0]), (loop, "NOTIFY_S", 600)]

Conn = psycopg.AsyncConnection[tuple[Any, ...]]
Spawn = Callable[..., "Child"]
Line = dict[str, Any]


class Interpreter(subprocess.Popen[bytes]):
    """A process that has to import everything itself."""

    def has_stopped(self) -> bool:
        return os.WIFSTOPPED(os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)[1])


class Child:
    """A treadle process of a test: a fork, unless it needs an interpreter of its own.

    `constants` of its modules have another value in a fork: no test waits for half a minute.
    """

    def __init__(
        self,
        arguments: list[str],
        *,
        log: Path,
        # Any: they are given among settings of all types.
        own_interpreter: Any = False,
        constants: Any = (),
        **settings: object,
    ) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")
        }
        # Tests are superusers that put triggers of their own on the tables.
        defaults = {"log_format": "json", "verify_code": "false"}
        for name, value in {**defaults, **settings}.items():
            environment[f"TREADLE_{name.upper()}"] = str(value)
        self.log = log
        with log.open("wb") as file:
            self._process: Interpreter | Fork = (
                Interpreter(
                    [sys.executable, "-m", "treadle", *arguments],
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                )
                if own_interpreter
                else forks().start(
                    "treadle",
                    arguments,
                    env=environment,
                    cwd=ROOT,
                    log=log,
                    constants=constants,
                )
            )
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def lines(self) -> list[Line]:
        """All log lines so far; a line that is not JSON is an error."""
        found = []
        for line in self.log.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # incomplete line
            try:
                found.append(json.loads(line))
            except ValueError:
                raise AssertionError(f"no JSON: {line!r}") from None
        return found

    def events(self, name: str, **fields: object) -> list[Line]:
        """The log entries of this event with these fields."""
        return [
            line
            for line in self.lines()
            if line["event"] == name and fields.items() <= line.items()
        ]

    async def logged(self, name: str, *, within: float = 40, **fields: object) -> Line:
        """Wait until it logs this event."""
        try:
            await until(lambda: self.events(name, **fields), within=within)
        except TimeoutError:
            raise AssertionError(f"no {name} in:\n{self.log.read_text()}") from None
        return self.events(name, **fields)[0]

    def kill(self) -> None:
        """SIGKILL: it gets no chance to clean up."""
        self.send(signal.SIGKILL)
        self._process.wait(timeout=40)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def pause(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        self.send(signal.SIGSTOP)
        await until(self._process.has_stopped)

    async def exit_code(self, within: float = 40) -> int:
        """Wait until it ends by itself."""
        try:
            await until(lambda: not self.running, within=within)
        except TimeoutError:
            raise AssertionError(f"still running:\n{self.log.read_text()}") from None
        return self._process.wait(timeout=40)

    def end(self) -> None:
        """End the process, whatever its state."""
        if self.running:
            self.kill()


async def until(
    condition: Callable[[], Awaitable[object]] | Callable[[], object], *, within: float = 40
) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(within):
        while True:
            found = condition()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return
            await anyio.sleep(0.02)


async def rows(conn: Conn, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    cursor = await conn.execute(query.encode(), parameters)
    return await cursor.fetchall()


async def value(conn: Conn, query: str, *parameters: object) -> Any:
    """The only value of a query."""
    ((found,),) = await rows(conn, query, *parameters)
    return found


async def statuses(conn: Conn) -> dict[str, int]:
    """The number of tasks by state."""
    found = await rows(conn, "select status, count(*) from treadle.tasks group by status")
    return dict(found)


async def all_completed(conn: Conn, count: int, *, within: float = 60) -> None:
    """Wait until a number of tasks are completed and none is left."""
    began = time.monotonic()
    found: dict[str, int] = {}
    while time.monotonic() - began < within:
        found = await statuses(conn)
        if found == {"completed": count}:
            return
        await anyio.sleep(0.05)
    raise AssertionError(f"after {within} s: {found}")


async def is_idle(conn: Conn) -> bool:
    """Whether a worker waits for tasks, so that producers notify it."""
    return bool(
        await rows(conn, "select from treadle.idle_queues where idle_until > clock_timestamp()")
    )
