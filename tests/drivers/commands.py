"""Run the command line, and create the rows that it shows."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import typer

from treadle import cli
from treadle.cli import SECTIONS, load

Conn = psycopg.Connection[tuple[Any, ...]]

_SCRIPT = Path(sys.executable).with_name("treadle")
COMMAND = [str(_SCRIPT)] if _SCRIPT.is_file() else [sys.executable, "-m", "treadle"]
NAMES = {name: text for section in SECTIONS.values() for name, text in section.items()}
NO_SERVER = "postgresql://me:hunter2@127.0.0.1:1/tasks"
NO_TASK = "01890000-0000-7000-8000-00000000dead"

APP = """
import asyncio
from treadle import FailPermanently, Treadle

app = Treadle()
app.queue("mail")
number = 7

@app.task()
async def add(a: int, b: int) -> int:
    return a + b

@app.task()
async def give_up() -> None:
    raise FailPermanently("no use")

@app.task()
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"
"""


@dataclass(frozen=True)
class Result:
    """The result of a run of treadle."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The tab-separated lines on stdout."""
        return [line.split("\t") for line in self.out.splitlines()]


Cli = Callable[..., Result]


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, nouns and verbs alike."""
    for name in NAMES:
        command = load(name)
        yield (name,), command
        for verb, inner in getattr(command, "commands", {}).items():
            yield (name, verb), inner


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child; a fixture has taken the settings out of ours."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", **extra}


def start(*arguments: str, **extra: str) -> subprocess.Popen[str]:
    """Start treadle as people do; `extra` are environment variables."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(extra),
    )


def treadle(*arguments: str, **extra: str) -> Result:
    """Run treadle as people do and wait for its end."""
    process = start(*arguments, **extra)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return Result(process.returncode, out, err)


def on_terminal(*arguments: str, typed: str = "", **extra: str) -> str:
    """What treadle prints on a terminal, escape codes included; `typed` is what a person types."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": "160", **extra}
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(variables),
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, typed.encode())
    chunks = []
    try:
        while chunk := _read(ours):
            chunks.append(chunk)
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    return b"".join(chunks).decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""


def enqueue(conn: Conn, spec: dict[str, Any] | None = None, **options: Any) -> str:
    """A ready task of the type code."""
    found = conn.execute(
        "select treadle.enqueue_task('default', 'code', %s, p_options => %s)",
        (json.dumps(spec or {}), json.dumps(options)),
    ).fetchone()
    assert found is not None
    return str(found[0])


def claim(conn: Conn, agent: str = "a1") -> tuple[UUID, UUID]:
    """The id and the token of the next task, which is running then."""
    conn.execute("select treadle.register_agent(%s)", (agent,))
    found = conn.execute("select id, claim_token from treadle.claim_tasks(%s)", (agent,)).fetchone()
    assert found is not None
    return found[0], found[1]


def ask(conn: Conn, name: str = "ask", **wait: Any) -> tuple[str, str]:
    """A task that waits, and the id of its wait."""
    task = enqueue(conn)
    _, token = claim(conn)
    wait = wait if "event" in wait else {"question": "Ship it?", **wait}
    found = conn.execute(
        "select wait_id from treadle.open_wait(%s, %s, %s, %s)",
        (task, token, name, json.dumps(wait)),
    ).fetchone()
    assert found is not None
    conn.execute(
        "select treadle.suspend_task(%s, %s, p_waits => array[%s]::uuid[])",
        (task, token, found[0]),
    )
    return task, str(found[0])


def complete(conn: Conn, output: object) -> str:
    """A task that is completed."""
    enqueue(conn)
    task, token = claim(conn)
    conn.execute("select treadle.complete_task(%s, %s, %s)", (task, token, json.dumps(output)))
    return str(task)


def dead_letter(conn: Conn, error: str = "boom", failure_class: str = "error", **spec: Any) -> str:
    """A dead-lettered task."""
    enqueue(conn, spec)
    task, token = claim(conn)
    conn.execute(
        "select treadle.fail_tasks(array[%s], array[%s], array[%s], array[%s], array['fail'])",
        (task, token, failure_class, error),
    )
    return str(task)


def status(conn: Conn, task_id: str) -> str:
    """The state of a task now."""
    found = conn.execute("select status from treadle.tasks where id = %s", (task_id,)).fetchone()
    assert found is not None
    return str(found[0])


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def parse(words: list[str]) -> str | None:
    """The error of the command line for these words, if any."""
    command: Any = typer.main.get_command(cli.app)
    name = "treadle"
    try:
        while True:
            context = command.make_context(name, words, resilient_parsing=False)
            rest = [*getattr(context, "_protected_args", []), *context.args]
            if not rest or not hasattr(command, "resolve_command"):
                return None
            name, command, words = command.resolve_command(context, rest)
    except Exception as error:
        if isinstance(error, typer.Exit):  # --help
            return None
        if hasattr(error, "format_message"):
            return str(error.format_message())
        raise
