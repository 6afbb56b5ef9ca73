"""Start `python -m treadle` as a fork of a process that has imported it already.

An interpreter takes the better part of a second to import treadle and what it needs, and the tests
start a thousand processes. What comes out of a fork is a process like any other: it has an id, an
environment, files and signals of its own, and runs the module as `python -m` does. Only its imports
are done. Tests of what a process needs from its first instruction on, memory for one, ask for an
interpreter of their own.

The server is a process next to the tests, started on first use; it ends when they do. It is the
parent of what it starts, so it is asked how that ended.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import treadle
from treadle.db.install.history import schema_problem

# Imported where they are used; not all are installed everywhere.
LAZY = ("cronsim", "http.server", "httpx2", "redis.asyncio", "rich.table", "uvicorn", "uvloop")
# The entry point, the plugin of pytest, and programs that run when they are imported.
LEFT_OUT = ("treadle.__main__", "treadle.testing", "treadle.cli.demo")

# A module, the name of a constant in it, and the value that it has in the process.
Constant = tuple[ModuleType, str, float | list[float]]


class Forks:
    """The client's side: one request, one answer."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            cwd=Path(__file__).resolve().parents[3],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._requests = ours.makefile("w")
        self._answers = ours.makefile("r")
        self._lock = threading.Lock()
        ours.close()
        atexit.register(self.close)

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        constants: Sequence[Constant] = (),
    ) -> "Fork":
        """Run a module as `python -m` does; what it writes goes to the end of the log."""
        words = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "log": str(log)}
        given = [(changed.__name__, name, value) for changed, name, value in constants]
        return Fork(self, int(self.ask(start=module, constants=given, **words)))

    def ask(self, **request: object) -> Any:
        with self._lock:
            print(json.dumps(request), file=self._requests, flush=True)
            answer = self._answers.readline()
        if not answer:
            raise AssertionError("the fork server is gone")
        return json.loads(answer)

    def close(self) -> None:
        """End the server with the connection; processes that still run continue."""
        for file in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                file.close()
        self._server.wait()


class Fork:
    """A process from the server, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks = forks
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            _, self.returncode = self._forks.ask(poll=self.pid)
        return self.returncode

    def has_stopped(self) -> bool:
        """Whether a signal has stopped it; true once for each time."""
        stopped, self.returncode = self._forks.ask(poll=self.pid)
        return bool(stopped)

    def wait(self, timeout: float) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
            time.sleep(0.002)
        return code

    def send_signal(self, number: int) -> None:
        # Its process id is not reused before its exit status is read.
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def forks() -> Forks:
    """The server of this test process."""
    return Forks()


def main() -> None:
    """The server's side; the child of a fork leaves it to run its module."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    # A person who interrupts the tests interrupts whole process groups.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import()
    # Read the SQL files once for all processes: each compares them with its database at its start.
    schema_problem(None, None)
    gc.collect()
    gc.freeze()
    with connection, connection.makefile("rw") as requests:
        task = _serve(requests)
    if task is not None:
        _run(**task)


def _import() -> None:
    for found in pkgutil.walk_packages(treadle.__path__, "treadle."):
        if not found.name.startswith(LEFT_OUT):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
    for name in LAZY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _serve(requests: Any) -> dict[str, Any] | None:
    """Answer until the tests end; in the child of a fork, return what it has to run."""
    answer: object
    for line in requests:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG | os.WUNTRACED)
            stopped = os.WIFSTOPPED(status)
            answer = [stopped, os.waitstatus_to_exitcode(status) if pid and not stopped else None]
        else:
            answer = os.fork()
            if answer == 0:
                return dict(request)
        print(json.dumps(answer), file=requests, flush=True)
    return None


def _run(
    start: str,
    arguments: list[str],
    env: dict[str, str],
    cwd: str,
    log: str,
    constants: list[tuple[str, str, float | list[float]]],
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[1:1] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    for module, name, value in constants:
        changed = importlib.import_module(module)
        assert hasattr(changed, name), f"{module} has no {name}"
        setattr(changed, name, value)
    sys.argv = [start, *arguments]
    runpy.run_module(start, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
