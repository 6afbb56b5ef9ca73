"""Run a program as a child: in a session of its own, ended as a whole, its output bounded.

A guard between the worker and the program ends it also when the worker is killed.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

# What the child leaves behind is killed with it; one that got away may hold the pipe a while.
LAST_WORDS_S = 1.0
GUARD = (sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")))


@dataclass(frozen=True, slots=True)
class Finished:
    """How a child ended, and the last that it has said."""

    code: int
    output: bytes
    dropped: int


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.kept = bytearray()
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        self.kept += chunk
        over = len(self.kept) - self._limit
        if over > 0:
            del self.kept[:over]
            self.dropped += over


async def run_child(
    arguments: Sequence[str],
    *,
    stdin: bytes,
    output_limit: int,
    env: Mapping[str, str],
    cwd: str | None = None,
) -> Finished:
    """Run a program to its end; who is cancelled here leaves no process of it behind."""
    if shutil.which(arguments[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(f"there is no program {arguments[0]}")
    theirs, ours = os.pipe()
    try:
        process = await anyio.open_process(
            [*GUARD, str(theirs), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=[theirs],
        )
        return await _finish(process, stdin, output_limit)
    finally:
        os.close(theirs)
        os.close(ours)


async def _finish(process: Process, stdin: bytes, output_limit: int) -> Finished:
    tail = _Tail(output_limit)
    code: int | None = None
    try:
        async with anyio.create_task_group() as helpers:
            said = anyio.Event()
            helpers.start_soon(_feed, process, stdin)
            helpers.start_soon(_listen, process, tail, said)
            code = await process.wait()
            _kill(process)
            with anyio.move_on_after(LAST_WORDS_S):
                await said.wait()
            helpers.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            if code is None:
                _kill(process)
            await process.aclose()
    return Finished(-1 if code is None else code, bytes(tail.kept), tail.dropped)


async def _feed(process: Process, text: bytes) -> None:
    # A child that does not read is no error.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        if process.stdin is not None:
            await process.stdin.send(text)
            await process.stdin.aclose()


async def _listen(process: Process, tail: _Tail, said: anyio.Event) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdout is not None:
            async for chunk in process.stdout:
                tail.add(chunk)
    said.set()


def _kill(process: Process) -> None:
    """End the child and all that it has started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
