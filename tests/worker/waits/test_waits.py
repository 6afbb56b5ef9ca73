"""A task asks people, releases its claim, and resumes with the answer."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import anyio
import pytest
from pydantic import BaseModel, Field

from tests.drivers.workers import Conn, row, rows, run_all, status, until, working
from treadle import Answer, Context, InvalidArgument, RetryAfter, Treadle, WaitExpired

pytestmark = pytest.mark.requirement("B2")
OPEN = "select id from treadle.waits where status = 'open' order by opened_at, id"
TASK = "select status, attempt, agent_id from treadle.tasks where id = %s"


async def open_waits(conn: Conn) -> list[UUID]:
    return [found[0] for found in await rows(conn, OPEN)]


async def test_a_question_gives_up_the_claim_until_it_is_answered(app: Treadle, conn: Conn) -> None:
    calls: list[Any] = []

    @app.task()
    async def publish(ctx: Context) -> Any:
        await ctx.step("draft", lambda: calls.append("draft"))
        answer = await ctx.ask("Publish?", options=["yes", "no"], context={"pages": 3})
        calls.append(answer)
        return answer.value

    handle = await publish.enqueue()
    await run_all(app)
    assert await row(conn, TASK, handle.id) == ("blocked", 0, None)

    [wait] = await open_waits(conn)
    assert await app.answer(wait, "yes", by="ada", note="good") == "answered"
    await run_all(app)

    assert await handle.result(timeout=5) == "yes"
    assert await row(conn, TASK, handle.id) == ("completed", 1, None)
    assert calls[0] == "draft"
    [answer] = calls[1:]
    assert isinstance(answer, Answer)
    assert (answer.value, answer.by, answer.note, answer.status) == (
        "yes",
        "ada",
        "good",
        "answered",
    )
    assert answer.at.tzinfo is not None


async def test_an_answer_wakes_a_worker_that_runs(woken_app: Treadle, conn: Conn) -> None:
    @woken_app.task()
    async def publish(ctx: Context) -> bool:
        return (await ctx.ask("Publish?", approvers=2)).approved

    async with working(woken_app):
        handle = await publish.enqueue()
        await until(lambda: open_waits(conn))
        [wait] = await open_waits(conn)
        assert await woken_app.answer(wait, "approve", by="ada") == "recorded"
        assert await woken_app.answer(wait, "approve", by="bob") == "answered"
        assert await handle.result(timeout=10) is True


async def test_an_answer_is_neither_true_nor_false(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def publish(ctx: Context) -> Any:
        answer = await ctx.ask("Publish?", approvers=1)
        with pytest.raises(TypeError, match=r"use \.approved or \.value"):
            bool(answer)
        return answer.approved

    handle = await publish.enqueue()
    await run_all(app)
    await app.answer((await open_waits(conn))[0], "reject")
    await run_all(app)

    assert await handle.result(timeout=5) is False


async def test_questions_asked_side_by_side_are_open_together(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def publish(ctx: Context) -> dict[str, Any]:
        found = {}

        async def ask(question: str) -> None:
            found[question] = (await ctx.ask(question)).value

        async with anyio.create_task_group() as group:
            for question in ("Title?", "Date?", "Price?"):
                group.start_soon(ask, question)
        return found

    handle = await publish.enqueue()
    await run_all(app)
    waits = await rows(conn, "select id, question from treadle.waits where status = 'open'")
    assert len(waits) == 3

    for wait, question in waits:
        assert await status(conn, handle.id) == "blocked"
        await app.answer(wait, question.upper())
    await run_all(app)

    assert await handle.result(timeout=5) == {
        "Title?": "TITLE?",
        "Date?": "DATE?",
        "Price?": "PRICE?",
    }
    suspended = "select count(*) from treadle.attempts where outcome = 'suspended'"
    assert await row(conn, suspended) == (1,)


async def test_one_answer_never_serves_two_questions(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def deploy(ctx: Context) -> list[Any]:
        first = await ctx.ask("Deploy?")
        second = await ctx.ask("Deploy?")
        return [first.value, second.value]

    handle = await deploy.enqueue()
    for value in ("one", "two"):
        await run_all(app)
        [wait] = await open_waits(conn)
        await app.answer(wait, value)
    await run_all(app)

    assert await handle.result(timeout=5) == ["one", "two"]
    names = await rows(conn, "select name from treadle.waits order by opened_at")
    assert names == [("ask:Deploy?",), ("ask:Deploy?#2",)]


async def test_an_answer_is_kept_over_a_failure(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def deploy(ctx: Context) -> Any:
        answer = await ctx.ask("Deploy " + "é" * 300)
        if ctx.attempt < 3:
            raise RetryAfter(0)
        return answer.value

    handle = await deploy.enqueue()
    await run_all(app)
    await app.answer((await open_waits(conn))[0], {"go": True})
    await run_all(app)

    assert await handle.result(timeout=5) == {"go": True}
    assert await row(conn, "select octet_length(name) <= 200 from treadle.waits") == (True,)


async def test_a_question_can_be_asked_before_its_answer_is_needed(
    app: Treadle, conn: Conn
) -> None:
    seen = []

    @app.task()
    async def publish(ctx: Context) -> Any:
        question = await ctx.ask_later("Publish?", name="gate")
        seen.append((question.id, await status(conn, ctx.task.id)))
        if await ctx.step("early", lambda: "early" in ctx.task.spec.get("when", "")):
            await app.answer((await open_waits(conn))[0], "in time")
        return (await question.answer()).value

    @app.task()
    async def early(ctx: Context, when: str) -> Any:
        return await publish(ctx)

    handle = await early.enqueue(when="early")
    await run_all(app)
    assert await handle.result(timeout=5) == "in time"
    assert seen[0][1] == "running"
    assert await row(conn, "select count(*) from treadle.attempts") == (0,)

    handle = await early.enqueue(when="late")
    await run_all(app)
    [wait] = await open_waits(conn)
    assert seen[-1][0] == wait
    await app.answer(wait, "later")
    await run_all(app)
    assert await handle.result(timeout=5) == "later"


class Trip(BaseModel):
    city: str
    nights: int = 1


async def test_an_answer_can_be_a_model(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def book(ctx: Context) -> str:
        trip = (await ctx.ask("Where to?", schema=Trip)).value
        assert isinstance(trip, Trip)
        return f"{trip.city} for {trip.nights}"

    handle = await book.enqueue()
    await run_all(app)
    [wait] = await open_waits(conn)
    with pytest.raises(InvalidArgument, match="city"):
        await app.answer(wait, {"town": "Bern"})
    await app.answer(wait, {"city": "Bern"})
    await run_all(app)

    assert await handle.result(timeout=5) == "Bern for 1"


class Address(BaseModel):
    street: str


class Person(BaseModel):
    home: Address
    work: Address | None = Field(None, description="if any")


class Tree(BaseModel):
    children: list["Tree"]


async def test_an_answer_can_be_a_model_of_models(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def book(ctx: Context) -> str:
        person = (await ctx.ask("Who?", schema=Person)).value
        return f"{person.home.street}, {person.work}"

    handle = await book.enqueue()
    await run_all(app)
    [wait] = await open_waits(conn)
    answers: list[dict[str, Any]] = [
        {"home": {}},
        {"home": {"street": "A"}, "work": {"street": 1}},
    ]
    for wrong in answers:
        with pytest.raises(InvalidArgument, match="street"):
            await app.answer(wait, wrong)
    await app.answer(wait, {"home": {"street": "A"}, "work": None})
    await run_all(app)

    assert await handle.result(timeout=5) == "A, None"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Tree, r"#/\$defs/Tree refers to itself"),
        ({"$ref": "#/$defs/a", "$defs": {}}, r"#/\$defs/a is not in \$defs"),
        ({"items": {"$ref": "http://a.example/s"}}, "http://a.example/s is not in"),
    ],
)
async def test_a_schema_whose_references_have_no_end_is_rejected(
    app: Treadle, conn: Conn, schema: Any, words: str
) -> None:
    @app.task()
    async def book(ctx: Context) -> Any:
        with pytest.raises(InvalidArgument, match=words):
            await ctx.ask("Who?", schema=schema)

    handle = await book.enqueue()
    await run_all(app)

    assert await handle.result(timeout=5) is None
    assert await open_waits(conn) == []


async def expired(app: Treadle, conn: Conn) -> None:
    await run_all(app)
    await conn.execute("update treadle.waits set expires_at = now() - interval '1 s'")
    await conn.execute("select treadle.expire_waits()")
    await run_all(app)


async def test_an_unanswered_question_fails_permanently(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=5)
    async def publish(ctx: Context) -> None:
        await ctx.ask("Publish?", expires=timedelta(days=1))

    handle = await publish.enqueue()
    await expired(app, conn)

    query = "select status, failure_class, failure_reason, attempt from treadle.tasks where id = %s"
    found = await row(conn, query, handle.id)
    assert (*found[:2], found[3]) == ("dead_lettered", "timeout", 1)
    assert "nobody answered in time: Publish?" in found[2]


async def test_a_question_has_a_policy_for_its_expiry(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def caught(ctx: Context) -> Any:
        try:
            await ctx.ask("Publish?", expires=60)
        except WaitExpired:
            return "went on"

    @app.task()
    async def default(ctx: Context) -> Any:
        return (await ctx.ask("Publish?", expires=60, on_expiry="default", default=None)).value

    @app.task()
    async def deny(ctx: Context) -> Any:
        return (await ctx.ask("Publish?", approvers=1, expires=60, on_expiry="deny")).value

    handles = [await each.enqueue() for each in (caught, default, deny)]
    await expired(app, conn)

    assert [await each.result(timeout=5) for each in handles] == ["went on", None, "reject"]
