"""Commands of test_pass: their input, and that no process of them is left."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.drivers.workers import Conn, row, run_all, until
from treadle import Task, Treadle
from treadle.errors import ConfigurationError
from treadle.worker.child_process import run_child

pytestmark = pytest.mark.requirement("F20")

ENDED = "select status, failure_class from treadle.tasks where id = %s"
FEEDBACK = "select feedback from treadle.attempts where task_id = %s"
ENVIRONMENT = {"PATH": os.environ["PATH"]}
# A child that leaves a grandchild behind, which writes its own number and holds the pipe.
FAMILY = """
import os, subprocess, sys, time
code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", code, sys.argv[1]])
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read():
    time.sleep(0.01)
if sys.argv[2] == "stay":
    time.sleep(60)
"""


def make(app: Treadle, *program: str, **options: Any) -> Task:
    """A task whose output the program judges."""
    app.command("unit", program, **options)

    @app.task(max_attempts=1, validation=[{"validator": "test_pass", "name": "unit"}])
    async def work() -> dict[str, str]:
        return {"text": "x" * 100_000}

    return work


async def test_a_command_gets_the_output_and_the_task_but_not_the_database(
    app: Treadle, conn: Conn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_SECRET", "x")
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("PGPASSWORD", "x")
    look = """
import json, os, sys
given = json.load(sys.stdin)
assert len(given["output"]["text"]) == 100_000 and given["task"]["type"] == "work", given
wrong = [name for name in os.environ if name.startswith(("TREADLE_", "PG", "DATABASE"))]
assert not wrong and os.environ["MORE"] == "1", wrong
assert os.getcwd() == sys.argv[1], os.getcwd()
"""
    where = os.path.realpath(tmp_path)  # noqa: ASYNC240
    work = make(app, sys.executable, "-c", look, where, cwd=where, env={"MORE": "1"})
    handle = await work.enqueue()

    await run_all(app)

    assert await row(conn, ENDED, handle.id) == ("completed", None)


async def test_a_command_that_does_not_read_and_talks_without_end_is_bounded(
    app: Treadle, conn: Conn
) -> None:
    talk = "import sys\nfor n in range(200_000): print('line', n)\nsys.exit(1)"
    work = make(app, sys.executable, "-c", talk, output_limit=1000)
    handle = await work.enqueue()

    await run_all(app)

    assert await row(conn, ENDED, handle.id) == ("dead_lettered", "invalid_output")
    [messages] = await row(conn, FEEDBACK, handle.id)
    assert messages[0] == "test_pass unit: unit ended with exit code 1"
    assert "line 199999" in messages[1]
    assert len(messages[1]) < 1200


@pytest.mark.parametrize("said", ["no", "x" * 1900, "y" * 1901])
async def test_truncated_output_of_a_command_is_marked(app: Treadle, conn: Conn, said: str) -> None:
    handle = await make(app, sys.executable, "-c", f"print({said!r}); exit(1)").enqueue()

    await run_all(app)

    [messages] = await row(conn, FEEDBACK, handle.id)
    shown = said if len(said) <= 1900 else f"…{said[1:]} (of 1902 bytes)"
    assert messages[1] == f"test_pass unit: {shown}"


async def test_a_killed_command_reports_its_signal(app: Treadle, conn: Conn) -> None:
    work = make(app, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    handle = await work.enqueue()

    await run_all(app)

    assert await row(conn, FEEDBACK, handle.id) == (["test_pass unit: unit ended with signal 9"],)


async def test_the_timeout_of_a_command_applies_regardless_of_the_task(
    app: Treadle, conn: Conn
) -> None:
    work = make(app, sys.executable, "-c", "import time; time.sleep(60)", timeout_s=0.3)
    check = {"validator": "test_pass", "name": "unit", "timeout_s": 3600}
    handle = await work.using(validation=[check]).enqueue()

    await run_all(app)

    assert await row(conn, ENDED, handle.id) == ("dead_lettered", "timeout")


@pytest.mark.parametrize("how", ["cut off", "ends by itself"])
async def test_the_processes_of_a_command_end_with_it(tmp_path: Path, how: str) -> None:
    file = tmp_path / "pid"
    stay = "stay" if how == "cut off" else "go"

    async def cut_off() -> None:
        await until(lambda: file.exists() and file.read_text())
        scope.cancel()

    async with anyio.create_task_group() as group:
        if how == "cut off":
            group.start_soon(cut_off)
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            finished = await run_child(
                [sys.executable, "-c", FAMILY, str(file), stay],
                stdin=b"",
                output_limit=100,
                env=ENVIRONMENT,
            )
            assert finished.code == 0

    assert scope.cancelled_caught == (how == "cut off")
    pid = int(file.read_text())
    await until(lambda: not _is_alive(pid))


def test_a_command_is_a_list_of_words_and_a_name_is_used_once() -> None:
    app = Treadle("postgresql://nowhere")
    wrong: Any = "rm -rf /"
    with pytest.raises(ConfigurationError, match="list of strings"):
        app.command("unit", wrong)
    app.command("unit", ["true"])
    with pytest.raises(ConfigurationError, match="already"):
        app.command("unit", ["true"])


def test_a_validator_takes_the_output_and_leaves_built_in_names_alone() -> None:
    app = Treadle("postgresql://nowhere")

    with pytest.raises(ConfigurationError, match="already"):
        app.validator("regex")(lambda output: None)
    with pytest.raises(ConfigurationError, match="already a validator json_schema"):
        app.validator("json-schema")(lambda output: None)
    app.validator("llm-judge")(lambda output: None)
    with pytest.raises(ConfigurationError, match="already a validator llm_judge"):
        app.validator("llm_judge")(lambda output: None)
    with pytest.raises(ConfigurationError, match="no parameter named output"):
        app.validator("mine")(lambda text: None)


def _is_alive(pid: int) -> bool:
    """Whether it runs; one that is dead and not yet buried does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
