"""The worker calls the database in batches: claims, heartbeats and completions."""

from typing import Any
from uuid import UUID

import anyio
import pytest

from tests.drivers.workers import Conn, row, rows, run_all, until, working
from treadle import Context, Treadle
from treadle.db.claims import Claims
from treadle.worker import lease

pytestmark = pytest.mark.requirement("F8")


async def test_free_slots_are_filled_by_one_claim(app: Treadle, conn: Conn) -> None:
    release = anyio.Event()
    started = []

    @app.task()
    async def hold(n: int) -> None:
        started.append(n)
        await release.wait()

    await hold.enqueue_many([{"n": n} for n in range(8)])

    async with working(app, slots=8):
        await until(lambda: len(started) == 8)
        tokens = await rows(conn, "select distinct claim_token from treadle.tasks")
        release.set()

    assert len(tokens) == 1


async def test_a_worker_never_runs_more_than_its_slots(app: Treadle, conn: Conn) -> None:
    now = most = 0

    @app.task()
    async def count() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await anyio.sleep(0.01)
        now -= 1

    await count.enqueue_many([{}] * 40)

    await run_all(app, slots=4)

    assert most == 4
    assert await rows(conn, "select distinct status from treadle.tasks") == [("completed",)]


async def test_what_finishes_during_a_flush_is_completed_by_the_next(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def nothing() -> None:
        return None

    await nothing.enqueue_many([{}] * 400)

    await run_all(app, slots=20)

    batches, done = await row(
        conn, "select count(distinct completed_at), count(completed_at) from treadle.tasks"
    )
    assert done == 400
    assert batches <= 100


@pytest.mark.requirement("F10")
async def test_one_heartbeat_carries_all_tasks_and_their_progress(app: Treadle, conn: Conn) -> None:
    release = anyio.Event()

    @app.task()
    async def hold(n: int, ctx: Context) -> None:
        ctx.progress(n / 10, step=f"step {n}")
        await release.wait()

    await hold.enqueue_many([{"n": n} for n in range(5)])

    async def beaten() -> bool:
        found = await row(
            conn,
            """
            select count(distinct heartbeat_at), count(*) filter (where heartbeat_at > started_at)
            from treadle.tasks
            where lease_until between heartbeat_at + interval '0.55 s'
              and heartbeat_at + interval '0.65 s'
            """,
        )
        return found == (1, 5)

    async with working(app, slots=5, heartbeat_s=0.2):
        await until(beaten)
        progress = await rows(
            conn, "select progress -> 'value', progress ->> 'step' from treadle.tasks order by 1"
        )
        release.set()

    assert progress == [(n / 10, f"step {n}") for n in range(5)]


async def test_a_short_task_is_completed_without_a_separate_start(app: Treadle, conn: Conn) -> None:
    release = anyio.Event()

    @app.task()
    async def nothing() -> None:
        return None

    @app.task()
    async def hold() -> None:
        await release.wait()

    async def events(task_id: object) -> list[str]:
        found = await rows(
            conn, "select kind from treadle.events where task_id = %s order by id", task_id
        )
        return [kind for (kind,) in found]

    await conn.execute("select treadle.define_queue('default', '{\"audit\": \"full\"}')")
    short, long = await nothing.enqueue(), await hold.enqueue()

    async with working(app):
        await until(lambda: _is_running(conn, long.id))
        release.set()
        await long.result(timeout=5)

    assert await events(short.id) == ["task.claimed", "task.completed"]
    assert await events(long.id) == ["task.claimed", "task.started", "task.completed"]


async def _is_running(conn: Conn, task_id: object) -> bool:
    return await rows(conn, "select status from treadle.tasks where id = %s", task_id) == [
        ("running",)
    ]


@pytest.mark.requirement("F28")
async def test_progress_does_not_wait_for_the_next_heartbeat(
    app: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    send = Claims.heartbeat

    async def heartbeat(self: Claims, claims: Any, progress: Any) -> dict[UUID, str]:
        sent.append(progress)
        return await send(self, claims, progress)

    async def reached() -> object:
        return (await row(conn, "select progress -> 'value' from treadle.tasks"))[0]

    monkeypatch.setattr(Claims, "heartbeat", heartbeat)
    monkeypatch.setattr(lease, "PROGRESS_S", 60.0)

    @app.task()
    async def count(ctx: Context) -> None:
        ctx.progress(0.1)
        await until(reached)
        for n in range(2, 6):
            ctx.progress(n / 10)
            await anyio.sleep(0.1)

    await count.enqueue()

    # The keeper looks ten times a second.
    await run_all(app, claim_ttl_s=0.8)

    assert sent == [[b'{"value":0.1}'], [b'{"value":0.5}']]
    assert await reached() == 0.5


@pytest.mark.requirement("F28")
@pytest.mark.parametrize("end", ["return", "raise", "transaction"])
async def test_a_task_ends_at_the_progress_that_it_reached(
    app: Treadle, conn: Conn, end: str
) -> None:
    @app.task(max_attempts=1)
    async def count(ctx: Context) -> None:
        ctx.progress(0.5)
        if end == "raise":
            raise ValueError
        if end == "transaction":
            async with ctx.transaction():
                ctx.progress(0.75)

    await count.enqueue()

    await run_all(app)

    reached = 0.75 if end == "transaction" else 0.5
    assert await row(conn, "select progress -> 'value' from treadle.tasks") == (reached,)
