"""Type checkers know the arguments and the result of a task: mypy and pyright agree."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.requirement("B15")

# A line with an error is marked; all others must pass.
CASES = """
from dataclasses import dataclass
from typing import Any, assert_type
from uuid import UUID

import psycopg

from treadle import Context, Handle, Task, Treadle
from treadle.testing import TaskRunner

app = Treadle()


@dataclass
class Report:
    title: str


@app.task
async def greet(name: str, times: int = 1) -> str:
    return name * times


@app.task(max_attempts=5)
async def report(ctx: Context, topic: str) -> Report:
    return Report(topic)


@app.task("sums.add", queue=app.queue("sums"))
def add(a: int, b: int) -> int:
    return a + b


@app.task
def count(ctx: Context, *, words: list[str]) -> dict[str, int]:
    return {word: 1 for word in words}


@app.task
async def untyped(first, second):  # type: ignore
    return first


@app.task
async def stored(value: object) -> str:
    return str(value)


@app.task(max_atempts=5)  # error
async def misspelled() -> None: ...


def anything(task: Task, handle: Handle) -> None: ...


async def main(conn: psycopg.Connection, aconn: psycopg.AsyncConnection) -> None:
    handle = await greet.enqueue(name="Ada")
    assert_type(handle, Handle[str])
    assert_type(await handle.result(), str)
    await greet.enqueue("Ada", times=2)
    await greet.enqueue(nam="Ada")  # error
    await greet.enqueue(name=5)  # error
    await greet.enqueue()  # error
    await greet.enqueue(name="Ada", loud=True)  # error

    await greet.using(priority=1, queue="sums").enqueue(name="Ada")
    await greet.using(priority=1).enqueue(nam="Ada")  # error
    await greet.using(prioritee=1).enqueue(name="Ada")  # error
    await greet.using(priority="high").enqueue(name="Ada")  # error

    made = await report.enqueue(topic="looms")
    assert_type(made, Handle[Report])
    assert_type(await made.result(timeout=5), Report)
    (await made.result()).titel  # error
    await report.enqueue(topik="looms")  # error

    assert_type(await (await add.enqueue(a=1, b=2)).result(), int)
    await add.enqueue(a=1, b="2")  # error
    assert_type(await (await count.enqueue(words=["a"])).result(), dict[str, int])
    await count.enqueue(["a"])  # error
    await untyped.enqueue(first=1, second=2)
    await stored.enqueue(value=1)
    assert_type(await (await stored.enqueue(value=1)).result(), str)

    inside = greet.enqueue(conn=conn, name="Ada")
    assert_type(inside, Handle[str])
    assert_type(await greet.enqueue(conn=aconn, name="Ada"), Handle[str])
    many = await add.enqueue_many([{"a": 1, "b": 2}])
    assert_type(many, list[Handle[int]])
    assert_type(add.enqueue_many([{"a": 1, "b": 2}], conn=conn), list[Handle[int]])

    assert_type(await (await app.enqueue("greet", {"name": "Ada"})).result(), Any)
    anything(greet, handle)


def sync(conn: psycopg.Connection) -> None:
    handle = greet.enqueue(name="Ada")
    assert_type(handle.wait(timeout=5), str)
    assert_type(handle.id, UUID)
    assert_type(add.enqueue(1, 2).wait(), int)
    assert_type([each.wait() for each in add.enqueue_many([{"a": 1, "b": 2}])], list[int])
    assert_type(app.run(handle.status()), str)
    greet.enqueue(nam="Ada")  # error
    handle.wait("soon")  # error


async def tested(runner: TaskRunner) -> None:
    assert_type(await runner.run_inline(add, a=1, b=2), int)
    await runner.run_inline(add, a=1)  # error
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases as a file of a project of its own, so that only their own settings apply."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "cases.py").write_text(CASES)
    return folder / "cases.py"


def expected() -> list[int]:
    """The lines that are marked as errors."""
    lines = CASES.splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# error")]


def test_mypy_refuses_exactly_the_wrong_calls(cases: Path, pytestconfig: pytest.Config) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    folder = cache.mkdir("mypy")

    out, err, _ = api.run(
        ["--strict", "--config-file=", "--cache-dir", str(folder), "--follow-imports=silent",
         "--disable-error-code=type-arg", "--allow-untyped-decorators",
         "--no-warn-unused-ignores", "-O", "json", str(cases)]
    )  # fmt: skip

    assert err == ""
    found = [json.loads(line) for line in out.splitlines()]
    assert sorted({each["line"] for each in found}) == expected(), out


def test_pyright_refuses_exactly_the_wrong_calls(cases: Path) -> None:
    checker = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
    if checker is None:
        pytest.skip("basedpyright is not installed")
    (cases.parent / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")]})
    )

    done = subprocess.run(
        [checker, "--outputjson", "--pythonpath", sys.executable, str(cases)],
        cwd=cases.parent, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    found = [
        each
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    lines = sorted({each["range"]["start"]["line"] + 1 for each in found})
    assert lines == expected(), json.dumps(found, indent=1)
