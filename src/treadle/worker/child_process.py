"""Run a program in a session of its own, with bounded output.

A guard process between the worker and the program kills the whole session when the program ends,
when it is cancelled, and when the worker itself is killed.
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

# Time to read the rest of the output. A process that left the session may keep the pipe open.
LAST_OUTPUT_S = 1.0
GUARD = (sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")))


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code of a child and the end of its output."""

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
    """Run a program to its end; if this call is cancelled, all its processes are killed."""
    if shutil.which(arguments[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(f"there is no program {arguments[0]}")
    guard_end, worker_end = os.pipe()
    try:
        process = await anyio.open_process(
            [*GUARD, str(guard_end), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=[guard_end],
        )
        return await _finish(process, stdin, output_limit)
    finally:
        os.close(guard_end)
        os.close(worker_end)


async def _finish(process: Process, stdin: bytes, output_limit: int) -> Finished:
    tail = _Tail(output_limit)
    code: int | None = None
    try:
        async with anyio.create_task_group() as helpers:
            output_read = anyio.Event()
            helpers.start_soon(_write_stdin, process, stdin)
            helpers.start_soon(_read_output, process, tail, output_read)
            code = await process.wait()
            _kill(process)
            with anyio.move_on_after(LAST_OUTPUT_S):
                await output_read.wait()
            helpers.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            if code is None:
                _kill(process)
            await process.aclose()
    return Finished(-1 if code is None else code, bytes(tail.kept), tail.dropped)


async def _write_stdin(process: Process, text: bytes) -> None:
    # It is not an error if the child does not read its input.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        if process.stdin is not None:
            await process.stdin.send(text)
            await process.stdin.aclose()


async def _read_output(process: Process, tail: _Tail, done: anyio.Event) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdout is not None:
            async for chunk in process.stdout:
                tail.add(chunk)
    done.set()


def _kill(process: Process) -> None:
    """Kill the child and every process of its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
