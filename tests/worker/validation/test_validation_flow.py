"""The arguments and rights of validators, and the messages for the next attempt."""

import sys
from typing import Any

import pytest

from tests.drivers.workers import Conn, answer_all, row, rows, run_all, status
from treadle import Context, InvalidOutput, RateLimited, Treadle
from treadle.fields import RetryPolicy
from treadle.worker import validation

pytestmark = pytest.mark.requirement("F20")

AT_ONCE: RetryPolicy = {"strategy": "immediate"}
ENDED = "select status, failure_class, failure_reason from treadle.tasks where id = %s"


async def test_the_next_attempt_gets_the_messages_of_the_validator(
    app: Treadle, conn: Conn
) -> None:
    told: list[Any] = []

    @app.task(retry=AT_ONCE, validation=[{"validator": "json_schema", "schema": {"minimum": 2}}])
    async def count(ctx: Context) -> int:
        told.append(([past["feedback"] for past in ctx.previous_attempts], ctx.tried))
        return ctx.attempt

    handle = await count.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == 2
    message = "json_schema: output: 1 is less than the minimum of 2"
    assert told[0] == ([], "")
    assert told[1][0] == [[message]]
    assert f"rejected: {message}" in told[1][1]


async def test_a_handler_may_refuse_its_own_output(app: Treadle, conn: Conn) -> None:
    @app.task(retry=AT_ONCE)
    async def draft(ctx: Context) -> list[Any]:
        if ctx.attempt == 1:
            raise InvalidOutput("too short", "no sources")
        return [past["feedback"] for past in ctx.previous_attempts]

    handle = await draft.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [["too short", "no sources"]]
    [[kind]] = await rows(conn, "select class from treadle.attempts")
    assert kind == "invalid_output"


async def test_validators_run_in_order_and_the_first_that_refuses_is_the_last(
    app: Treadle, conn: Conn
) -> None:
    ran: list[str] = []

    @app.validator("note")
    def note(output: Any, name: str, accept: bool) -> bool:
        ran.append(name)
        return accept

    checks: list[dict[str, Any]] = [
        {"validator": "none"},
        {"validator": "note", "name": "one", "accept": True},
        {"validator": "note", "name": "two", "accept": False},
        {"validator": "note", "name": "three", "accept": True},
    ]

    @app.task(max_attempts=1, validation=checks)
    async def work() -> None: ...

    handle = await work.enqueue()

    await run_all(app)

    assert ran == ["one", "two"]
    assert await status(conn, handle.id) == "dead_lettered"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"validator": "unheard_of"}, "no validator 'unheard_of'"),
        ({"validator": "test_pass", "name": "unit"}, "no command 'unit'"),
        ({"validator": "known", "limit": 3}, "does not take these settings"),
        ({"validator": "json_schema", "schema": {"type": "nonsense"}}, "nonsense"),
        ({"validator": "json_schema", "schema": {"$ref": "http://a.example/s"}}, "not part of"),
        ({"validator": "json_schema", "schema": {"$ref": "file:///etc/passwd"}}, "not part of"),
        ({"validator": "regex", "pattern": "(?=look)"}, "regex"),
        ({"validator": "regex", "pattern": "((a{1000}){1000}){1000}"}, "regex"),
    ],
)
async def test_a_validator_that_this_worker_cannot_run_is_refused_without_a_retry(
    app: Treadle, conn: Conn, settings: dict[str, Any], words: str
) -> None:
    ran: list[int] = []

    @app.validator("known")
    def known(output: Any, size: int = 1) -> None: ...

    @app.task(max_attempts=5)
    async def work() -> None:
        ran.append(1)

    handle = await work.using(validation=[settings]).enqueue()

    await run_all(app)

    ended, kind, reason = await row(conn, ENDED, handle.id)
    assert (ended, kind) == ("dead_lettered", "refused")
    assert words in reason
    # What can be known beforehand is refused before anything is paid for.
    assert ran == [] or "$ref" in settings.get("schema", {}) or "pattern" in settings


async def test_a_missing_extra_names_what_to_install(
    app: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    validation._made.cache_clear()

    @app.task(validation=[{"validator": "regex", "pattern": "x"}])
    async def work() -> str:
        return "x"

    handle = await work.enqueue()

    await run_all(app)

    ended, kind, reason = await row(conn, ENDED, handle.id)
    assert (ended, kind) == ("dead_lettered", "refused")
    assert "pip install 'treadle[schema]'" in reason


async def test_a_judge_that_is_rate_limited_burns_no_attempt(app: Treadle, conn: Conn) -> None:
    @app.validator("llm_judge")
    async def judge(output: Any, criteria: str, ctx: Context) -> None:
        raise RateLimited(50, "slow down")

    @app.task(validation=[{"validator": "llm_judge", "criteria": "kind"}])
    async def work() -> None: ...

    handle = await work.enqueue()

    await run_all(app)

    query = "select status, attempt, rate_limits from treadle.tasks where id = %s"
    assert await row(conn, query, handle.id) == ("retrying", 0, 1)


async def test_a_validator_may_ask_a_person(app: Treadle, conn: Conn) -> None:
    calls: list[str] = []

    @app.validator("editor")
    async def editor(output: str, ctx: Context) -> str | None:
        answer = await ctx.ask(f"Publish {output}?", options=["yes", "no"])
        return None if answer.value == "yes" else "the editor says no"

    @app.task(validation=[{"validator": "editor"}])
    async def write(ctx: Context) -> str:
        async def draft() -> str:
            calls.append("paid")
            return "a text"

        return str(await ctx.step("draft", draft))

    handle = await write.enqueue()
    await run_all(app)
    assert await status(conn, handle.id) == "blocked"

    await answer_all(app, conn, "yes")
    await run_all(app)

    assert await handle.result(timeout=5) == "a text"
    assert calls == ["paid"]
