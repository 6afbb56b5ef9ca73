"""Arguments may be positional, and a result is what the handler returns, not only its JSON."""

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tests.drivers.engine import Driver
from tests.drivers.workers import run_all
from treadle import Context, RetryAfter, Treadle
from treadle.errors import InvalidArgument

pytestmark = pytest.mark.requirement("B15")


@dataclass
class Line:
    item: str
    due: date


class Order(BaseModel):
    lines: list[Line]


ORDER = Order(lines=[Line("loom", date(2026, 12, 1))])


async def as_model(ctx: Context) -> Order:
    return ORDER


async def as_list() -> list[Line]:
    return ORDER.lines


def as_tuple() -> tuple[int, date]:
    return 1, date(2026, 12, 1)


async def as_optional() -> Order | None:
    return None


async def as_json() -> dict[str, list[int] | None]:
    return {"a": [1], "b": None}


async def as_word() -> Literal["yes", "no"]:
    return "yes"


async def or_outcome() -> list[Line] | RetryAfter:
    return ORDER.lines


RETURNED = {
    or_outcome: ORDER.lines,
    as_model: ORDER,
    as_list: ORDER.lines,
    as_tuple: (1, date(2026, 12, 1)),
    as_optional: None,
    as_json: {"a": [1], "b": None},
    as_word: "yes",
}


@pytest.mark.parametrize("handler", RETURNED, ids=lambda handler: handler.__name__)
async def test_a_result_is_what_the_handler_returned(app: Treadle, handler: Any) -> None:
    task = app.task(handler)
    handle = await task.enqueue()
    await run_all(app)

    result = await handle.result(timeout=10)

    assert result == RETURNED[handler]
    assert type(result) is type(RETURNED[handler])


async def test_an_output_of_other_code_that_does_not_fit_is_an_error(
    app: Treadle, driver: Driver
) -> None:
    task = app.task("order")(as_model)
    handle = await task.enqueue()
    driver.complete(driver.claim_one(types=["order"]), output={"lines": 5})

    with pytest.raises(InvalidArgument, match="the output of order is not what") as raised:
        await handle.result(timeout=10)

    assert "Order" in str(raised.value.hint)


async def test_an_output_of_a_task_enqueued_by_name_is_json(app: Treadle) -> None:
    await app.task(as_tuple).enqueue()
    handle = await app.enqueue("as_tuple")
    await run_all(app)

    assert await handle.result(timeout=10) == [1, "2026-12-01"]


async def test_arguments_may_be_positional(app: Treadle, driver: Driver) -> None:
    @app.task
    async def add(ctx: Context, a: int, b: int = 0) -> int:
        return a + b

    handle = await add.enqueue(40, b=2)
    assert driver.task(handle.id)["spec"] == {"a": 40, "b": 2}
    await run_all(app)
    assert await handle.result(timeout=10) == 42

    wrong: Any = add
    with pytest.raises(InvalidArgument, match="a is given twice"):
        await wrong.enqueue(1, a=2)
    with pytest.raises(InvalidArgument, match="too many arguments"):
        await wrong.enqueue(1, 2, 3)
