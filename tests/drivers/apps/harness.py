"""Callbacks of a harness under test: they write a line to a file, and fail on request.

TREADLE_TEST_EFFECTS names the file. A decision says how its action fails; by default it succeeds.
"""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import anyio

from treadle.db.harness import HarnessTask
from treadle.services.harness import redeliver


def note(line: str) -> None:
    """Append a line atomically."""
    path = os.environ["TREADLE_TEST_EFFECTS"]
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def act(task: HarnessTask, decision: dict[str, Any]) -> None:
    """A plain function; it runs in a thread."""
    note(json.loads(json.dumps(task.task_id)))
    how = decision.get("how")
    if how == "die" and task.tries == 1 and not _seen("again"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "raise":
        raise RuntimeError("no such label")
    elif how == "exit":
        raise SystemExit(3)
    elif how == "cancel":
        raise asyncio.CancelledError("by itself")
    elif how == "hold":
        while not _seen("go on"):
            time.sleep(0.02)
        note(f"held {task.task_id}")


@redeliver
def act_again(task: HarnessTask, decision: dict[str, Any]) -> None:
    """The same, safe to repeat."""
    act(task, decision)


async def act_async(task: HarnessTask, decision: dict[str, Any]) -> None:
    """The same on the event loop."""
    note(str(task.task_id))
    how = decision.get("how")
    if how == "hold":
        await anyio.sleep_forever()
    elif how == "cancel":
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner


def _seen(line: str) -> bool:
    return line in Path(os.environ["TREADLE_TEST_EFFECTS"]).read_text().splitlines()
