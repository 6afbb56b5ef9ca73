"""A return value that does not fit the annotation of its handler fails validation on request."""

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from tests.drivers.workers import Conn, row, run_all
from treadle import Context, RetryAfter, Treadle

pytestmark = pytest.mark.requirement("F28")
RETURNS = [{"validator": "returns"}]


class Verdict(BaseModel):
    label: str
    score: float
    day: date | None = None


def returning(kind: Any, value: Any) -> Any:
    async def answer() -> Any:
        return value

    answer.__annotations__["return"] = kind
    return answer


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (Verdict, Verdict(label="ok", score=1, day=date(2026, 1, 2)), None),
        (Verdict, {"label": "ok", "score": 1}, None),
        (list[int], (1, 2), None),
        (set[int], {1, 2}, None),
        (dict[str, int] | RetryAfter, {"a": 1}, None),
        (None, None, None),
        (int, "5", "returns: output: Input should be a valid integer"),
        (str, None, "returns: output: Input should be a valid string"),
        (None, 3, "returns: output: Input should be null"),
        (Verdict, {"label": "ok"}, "returns: score: Field required"),
        (list[int], [1, "x"], "returns: 1: Input should be a valid integer"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_the_annotation_decides(
    app: Treadle, conn: Conn, kind: Any, value: Any, problem: str | None
) -> None:
    answer = app.task("answer", validation=RETURNS, max_attempts=1)(returning(kind, value))
    await answer.enqueue()

    await run_all(app)

    if problem is None:
        assert await row(conn, "select status from treadle.tasks") == ("completed",)
        return
    [failed] = (await row(conn, "select jsonb_agg(attempts) from treadle.attempts"))[0]
    assert failed["class"] == "invalid_output"
    assert problem in failed["error"]


async def test_it_is_not_checked_unless_the_type_asks(app: Treadle, conn: Conn) -> None:
    answer = app.task("answer")(returning(int, "five"))
    await answer.enqueue()

    await run_all(app)

    assert await row(conn, "select status from treadle.tasks") == ("completed",)


async def test_a_handler_without_an_annotation_is_refused(app: Treadle, conn: Conn) -> None:
    async def answer(ctx: Context):  # type: ignore[no-untyped-def]
        raise AssertionError("not called")

    await app.task(validation=RETURNS)(answer).enqueue()

    await run_all(app)

    [failed] = (await row(conn, "select jsonb_agg(attempts) from treadle.attempts"))[0]
    assert failed["class"] == "refused"
    assert "answer has no return annotation" in failed["error"]
