"""Bad input through the Python API raises a typed error that names the place; nothing changes."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged
from treadle import Treadle
from treadle.errors import (
    InvalidArgument,
    TooLarge,
    TreadleError,
    UnknownAgent,
    UnknownQueue,
    UnknownType,
)

Call = Callable[[Treadle], Awaitable[Any]]


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def code(spec: Any = None, **options: Any) -> Call:
    """Enqueue a task of type code with this spec and these options."""
    return lambda app: app.enqueue("code", spec, **options)


NO_ZONE = datetime.now(tz=UTC).replace(tzinfo=None)
BAD: dict[str, tuple[Call, type[TreadleError], str]] = {
    "unknown type": (lambda app: app.enqueue("cdoe"), UnknownType, "'cdoe'"),
    "unknown queue": (code(queue="nope"), UnknownQueue, "'nope'"),
    "NUL": (code({"a": {"b": "x\x00"}}), InvalidArgument, r"spec\.a\.b contains a NUL"),
    "NUL in a name": (code({"a\x00": 1}), InvalidArgument, "NUL"),
    "lone surrogate": (
        code({"a": ["\ud800"]}),
        InvalidArgument,
        r"spec\.a\[0\] contains a lone surrogate",
    ),
    "NaN": (code({"a": float("nan")}), InvalidArgument, r"spec\.a is nan"),
    "Infinity": (code({"a": [1, float("inf")]}), InvalidArgument, r"spec\.a\[1\] is inf"),
    "10,000 deep": (code({"a": nested(10_000)}), InvalidArgument, "more than 64 levels"),
    "65 deep": (code({"a": nested(65)}), InvalidArgument, "more than 64 levels"),
    "a value that is not JSON": (code({"a": object()}), InvalidArgument, "cannot be written"),
    "too large": (code({"a": "x" * 1_048_577}), TooLarge, "1048576 are allowed"),
    "priority 101": (code(priority=101), InvalidArgument, "priority must"),
    "priority -1": (code(priority=-1), InvalidArgument, "priority must"),
    "priority 3e9": (code(priority=3_000_000_000), InvalidArgument, "priority must"),
    "negative delay": (code(delay=-1), InvalidArgument, "delay_s must"),
    "negative timedelta": (code(delay=timedelta(days=-1)), InvalidArgument, "delay_s must"),
    "infinite delay": (code(delay=float("inf")), InvalidArgument, "inf"),
    "NaN delay": (code(delay=float("nan")), InvalidArgument, "nan"),
    "a time without a zone": (code(run_at=NO_ZONE), InvalidArgument, "time zone"),
    "a time too far off": (
        code(run_at=datetime(2999, 1, 1, tzinfo=UTC)),
        InvalidArgument,
        "run_at must",
    ),
    "no time at all": (code(timeout_s=0), InvalidArgument, "timeout_s must"),
    "negative timeout": (code(timeout_s=-5), InvalidArgument, "timeout_s must"),
    "infinite timeout": (code(timeout_s=float("inf")), InvalidArgument, "inf"),
    "empty key": (code(key=""), InvalidArgument, "1 to 200 characters"),
    "10 kB key": (code(key="k" * 10_240), InvalidArgument, "1 to 200 characters"),
    "NUL in the key": (code(key="a\x00b"), InvalidArgument, "0x00"),
    "unknown option": (code(prioritty=1), InvalidArgument, "unknown option 'prioritty'"),
    "bad retry policy": (code(retry={"strategy": "linear"}), InvalidArgument, "strategy cannot"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_task_raises_its_error_and_nothing_changes(
    app: Treadle, driver: Driver, name: str
) -> None:
    call, error, words = BAD[name]

    with unchanged(driver), pytest.raises(error, match=words) as raised:
        await call(app)

    assert type(raised.value) is error
    # The connection is as good as before.
    await app.enqueue("code")


@pytest.mark.parametrize(
    ("name", "spec", "options", "error"),
    [
        ("cdoe", {}, {}, UnknownType),
        ("code", {"a": "\x00"}, {}, InvalidArgument),
        ("code", {"a": "x" * 1_048_577}, {}, TooLarge),
        ("code", {}, {"delay": float("nan")}, InvalidArgument),
        ("code", {}, {"queue": "nope"}, UnknownQueue),
    ],
    ids=["type", "NUL", "size", "delay", "queue"],
)
async def test_the_same_errors_come_on_the_callers_own_connection(
    app: Treadle,
    driver: Driver,
    name: str,
    spec: dict[str, Any],
    options: dict[str, Any],
    error: type[TreadleError],
) -> None:
    with unchanged(driver), psycopg.connect(driver.url) as conn:
        with pytest.raises(error):
            app.enqueue(name, spec, conn=conn, **options)
        conn.rollback()


async def test_a_bad_task_among_good_ones_keeps_all_of_them_out(
    app: Treadle, driver: Driver
) -> None:
    @app.task()
    async def greet(name: str) -> None: ...

    with unchanged(driver):
        with pytest.raises(InvalidArgument, match="NUL"):
            await greet.enqueue_many([{"name": "ada"}, {"name": "\x00"}])
        with pytest.raises(InvalidArgument, match="one key for 2 tasks"):
            await greet.using(key="k").enqueue_many([{"name": "ada"}, {"name": "bob"}])
        with pytest.raises(InvalidArgument, match="keys"):
            await greet.enqueue_many([{"name": "ada"}, {"name": "bob"}], keys=["k"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": 5, "times": 1}, "name: Input should be a valid string"),
        ({"name": "ada"}, "times: Field required"),
        ({"name": "ada", "times": "many"}, "times: Input should be a valid integer"),
        ({"name": "ada", "times": 1, "loud": True}, "loud: Extra inputs"),
    ],
)
async def test_arguments_of_the_wrong_type_are_refused_before_they_are_sent(
    app: Treadle, driver: Driver, arguments: dict[str, Any], words: str
) -> None:
    @app.task()
    async def greet(name: str, times: int) -> None: ...

    with unchanged(driver), pytest.raises(InvalidArgument, match=words) as raised:
        await greet.enqueue(**arguments)

    assert "greet(name: str, times: int)" in (raised.value.hint or "")


async def test_arguments_of_the_wrong_type_that_came_by_sql_are_a_dead_letter_not_a_retry(
    app: Treadle, driver: Driver
) -> None:
    ran = []

    @app.task(max_attempts=5)
    async def greet(name: str) -> None:
        ran.append(name)

    driver.rows('select treadle.declare_types(\'{"greet": {"max_attempts": 5}}\')')
    task_id = driver.enqueue({"name": 5}, type="greet")
    fine = driver.enqueue({"name": "ada"}, type="greet")

    await app.run_worker(until_empty=True)

    assert ran == ["ada"]
    assert (driver.state_of(task_id), driver.state_of(fine)) == ("dead_lettered", "completed")
    [attempt] = driver.attempts(task_id)
    assert (attempt["class"], attempt["attempt"]) == ("refused", 1)
    assert "name: Input should be a valid string" in attempt["error"]


async def test_bad_calls_of_agents_raise_their_errors(app: Treadle, driver: Driver) -> None:
    db = app.db

    with unchanged(driver):
        with pytest.raises(UnknownAgent, match="'nobody'"):
            await db.claims.take("nobody", ["default"], types=None, limit=1, token=uuid4())
        with pytest.raises(InvalidArgument, match="limit must be"):
            await db.claims.take("a", ["default"], types=None, limit=0, token=uuid4())
        with pytest.raises(UnknownQueue, match="'nope'"):
            await db.claims.take("a", ["nope"], types=None, limit=1, token=uuid4())
        with pytest.raises(InvalidArgument, match="Bad Name"):
            await db.types.declare({}, ["Bad Name"])
        with pytest.raises(InvalidArgument, match="bad type"):
            await db.types.declare({"bad type": {}}, [])
