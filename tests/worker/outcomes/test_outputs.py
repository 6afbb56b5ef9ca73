"""The output of a handler is stored as completely as possible, and never blocks the task."""

import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, row, run_all
from treadle import Context, TaskFailed, Treadle


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Writing an output blocks the loop: only an alarm can end it."""

    def stop(*_: object) -> None:
        raise TimeoutError("an output takes too long to write")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Reply(BaseModel):
    text: str
    score: float = 0.0


@dataclass
class Point:
    x: float
    y: float


class Client:
    """What no JSON can hold."""


def circle() -> list[Any]:
    """A list that holds itself, twice."""
    around: list[Any] = []
    around += [around, around, "end"]
    return around


def deep(levels: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("output", "stored"),
    [
        (None, None),
        ({"a": [1, 2.5, True, None, "é"]}, {"a": [1, 2.5, True, None, "é"]}),
        ("a\x00b", "a\u2400b"),
        ({"bad\x00key": "x"}, {"bad\u2400key": "x"}),
        ("half \ud800 pair", "half ? pair"),
        ({"n": math.nan, "i": math.inf}, {"n": None, "i": None}),
        (Reply(text="fine"), {"text": "fine", "score": 0.0}),
        (Reply(text="a\x00b", score=math.nan), {"text": "a\u2400b", "score": None}),
        (Point(1, -math.inf), {"x": 1, "y": None}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        ({1: {2, 3}}, {"1": [2, 3]}),
        ("NaN and Infinity are words here", "NaN and Infinity are words here"),
        (b"bytes", "bytes"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_an_output_is_stored_with_what_json_cannot_hold_replaced(
    app: Treadle, output: object, stored: object
) -> None:
    @app.task()
    async def answer() -> object:
        return output

    handle = await answer.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == stored


@pytest.mark.parametrize(
    "output",
    [object(), b"\xff\xfe", {"f": print}, 10**5000, circle(), deep(2000), Reply(text="\ud800")],
    ids=["object", "bytes", "function", "huge number", "circle", "deep", "model"],
)
async def test_an_unusual_output_still_completes_the_task(app: Treadle, output: object) -> None:
    @app.task(max_attempts=1)
    async def answer() -> object:
        return output

    handle = await answer.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert await handle.status() == "completed"


@pytest.mark.requirement("F28")
@pytest.mark.parametrize(
    ("output", "replaced"),
    [
        ({"score": [1.0, math.nan]}, "output.score[1]: nan became null"),
        ({"text": "a\x00b"}, "output.text: characters that PostgreSQL cannot store"),
        ({"a\x00": 1}, "characters that PostgreSQL cannot store"),
        ({"client": Client()}, "Client became text"),
        ({"client": Client(), "score": math.inf}, "output.client: Client became text"),
        (b"\xff", "output: bytes that are not UTF-8"),
        (circle(), "list contains itself"),
        (deep(2000), "list is nested too deeply"),
        (datetime(2026, 1, 2, tzinfo=UTC), None),
        ({1: {2, 3}, "NaN": Reply(text="fine")}, None),
    ],
    ids=["nan", "text", "key", "object", "both", "bytes", "circle", "deep", "date", "set"],
)
@pytest.mark.parametrize("by", ["return", "transaction"])
async def test_what_json_cannot_hold_is_logged_and_noted_on_the_task(
    app: Treadle, conn: Conn, output: object, replaced: str | None, by: str
) -> None:
    @app.task()
    async def answer(ctx: Context) -> object:
        if by == "return":
            return output
        async with ctx.transaction(output=output):
            return None

    handle = await answer.enqueue()

    with capture_logs() as logs:
        await run_all(app)

    warnings = [each for each in logs if each["event"] == "task.output_changed"]
    found = await row(conn, "select status, attempt_notes::text from treadle.task_details")
    assert found[0] == "completed"
    if replaced is None:
        assert (warnings, found[1]) == ([], None)
        return
    [warning] = warnings
    assert (warning["log_level"], warning["task_id"]) == ("warning", str(handle.id))
    assert replaced in str(warning["replaced"])
    assert replaced in found[1]


async def test_an_output_that_is_too_large_is_refused_with_its_size(
    app: Treadle, conn: Conn
) -> None:
    @app.task(max_attempts=5)
    async def answer() -> str:
        return "x" * (16 * 1024 * 1024)

    handle = await answer.enqueue()

    await run_all(app)

    with pytest.raises(TaskFailed, match="the output has 16777218 bytes, 16777216 are allowed"):
        await handle.result(timeout=5)
    found = await row(
        conn, "select status, failure_class, attempt from treadle.tasks where id = %s", handle.id
    )
    assert found == ("dead_lettered", "invalid_output", 1)


@pytest.mark.own_database
async def test_the_log_of_a_refused_output_names_the_task_and_shows_no_token_and_no_payload(
    app: Treadle, conn: Conn
) -> None:
    seen: list[str] = []
    await conn.execute(
        "alter table treadle.tasks add constraint odd_check check (output <> '\"odd\"')"
    )

    @app.task("leak")
    async def answer(ctx: Context, password: str) -> str:
        seen.extend([str(ctx.task.token), password, repr(ctx.task)])
        return "odd"

    handle = await answer.enqueue(password="hunter2")
    with capture_logs() as logs:
        await run_all(app)

    [refused] = [each for each in logs if each["event"] == "completer.result_rejected"]
    assert (refused["task_id"], refused["type"]) == (str(handle.id), "leak")
    token, password, shown = seen
    for text in (str(logs), shown):
        assert token not in text
        assert password not in text


async def test_one_bad_answer_does_not_hold_up_the_others(app: Treadle) -> None:
    @app.task(max_attempts=1)
    async def answer(n: int) -> object:
        return circle() if n % 2 else n

    handles = await answer.enqueue_many([{"n": n} for n in range(20)])

    await run_all(app, slots=20)

    assert [await handle.status() for handle in handles] == ["completed"] * 20
