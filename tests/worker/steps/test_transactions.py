"""`ctx.transaction()`: the writes of the handler and the completion are one commit."""

from typing import Any

import anyio
import psycopg
import pytest
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, expire, row, rows, run_all, until, working
from treadle import ClaimLost, Context, RetryAfter, Treadle
from treadle.errors import IllegalTransition

pytestmark = pytest.mark.own_database
NOTE = "insert into notes (task_id, attempt) values (%s, %s)"
NOTES = "select task_id, attempt from notes order by 2"
ENDED = "select status, output, attempt from treadle.tasks where id = %s"


@pytest.fixture(autouse=True)
async def notes(conn: Conn) -> None:
    """A plain table that handlers write to."""
    await conn.execute("create table notes (task_id uuid, attempt integer)")


async def test_writes_and_completion_are_there_together(app: Treadle, conn: Conn) -> None:
    seen = []

    @app.task()
    async def note(ctx: Context) -> Any:
        async with ctx.transaction(output={"wrote": 1}) as tx:
            await tx.execute(NOTE, (ctx.task.id, ctx.attempt))
            seen.append(await rows(conn, NOTES))
        seen.append((await rows(conn, NOTES)) + (await rows(conn, ENDED, ctx.task.id)))
        return "what is returned after the commit does not count"

    handle = await note.enqueue()

    await run_all(app)

    assert seen == [[], [(handle.id, 1), ("completed", {"wrote": 1}, 1)]]
    assert await handle.result(timeout=5) == {"wrote": 1}
    assert await rows(conn, NOTES) == [(handle.id, 1)]


async def test_an_error_in_the_transaction_undoes_the_writes_and_fails_the_attempt(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def note(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(NOTE, (ctx.task.id, ctx.attempt))
            if ctx.attempt == 1:
                raise RetryAfter(0)
            if ctx.attempt == 2:
                try:
                    await tx.execute("select 1 / 0")
                except psycopg.errors.DivisionByZero as error:
                    raise RetryAfter(0) from error

    handle = await note.enqueue()

    await run_all(app)

    assert await rows(conn, NOTES) == [(handle.id, 3)]
    assert await row(conn, ENDED, handle.id) == ("completed", None, 3)


async def test_a_superseded_claim_writes_nothing(app: Treadle, conn: Conn) -> None:
    wrote, release, lost = anyio.Event(), anyio.Event(), []

    @app.task(retry={"strategy": "immediate"})
    async def note(ctx: Context) -> Any:
        try:
            async with ctx.transaction(output=ctx.attempt) as tx:
                await tx.execute(NOTE, (ctx.task.id, ctx.attempt))
                if ctx.attempt == 1:
                    wrote.set()
                    await release.wait()
        except ClaimLost as error:
            lost.append(error.detail)
            raise

    handle = await note.enqueue()

    with capture_logs() as logs:
        async with working(app, heartbeat_s=60):
            await wrote.wait()
            await expire(conn, handle.id)
            assert await handle.result(timeout=5) == 2
            release.set()
            await until(lambda: lost)

    assert lost == [{"task_id": str(handle.id)}]
    assert await rows(conn, NOTES) == [(handle.id, 2)]
    assert await row(conn, ENDED, handle.id) == ("completed", 2, 2)
    assert [each["reason"] for each in logs if each["event"] == "task.stopped"] == ["lost"]


async def test_a_late_transaction_is_accepted_if_no_other_claim_was_made(
    app: Treadle, conn: Conn
) -> None:
    wrote, release = anyio.Event(), anyio.Event()

    @app.task(retry={"strategy": "fixed", "initial_delay_s": 60})
    async def note(ctx: Context) -> Any:
        async with ctx.transaction(output="late") as tx:
            await tx.execute(NOTE, (ctx.task.id, ctx.attempt))
            wrote.set()
            await release.wait()

    handle = await note.enqueue()

    async with working(app, heartbeat_s=60):
        await wrote.wait()
        await expire(conn, handle.id)
        release.set()
        assert await handle.result(timeout=5) == "late"

    assert await rows(conn, NOTES) == [(handle.id, 1)]


async def test_a_task_has_one_transaction(app: Treadle, conn: Conn) -> None:
    seen = []

    @app.task()
    async def note(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(NOTE, (ctx.task.id, 1))
        try:
            async with ctx.transaction() as tx:
                await tx.execute(NOTE, (ctx.task.id, 2))
        except IllegalTransition as error:
            seen.append(str(error))

    handle = await note.enqueue()

    await run_all(app)

    assert seen == [f"task {handle.id} is already completed"]
    assert await rows(conn, NOTES) == [(handle.id, 1)]


async def test_a_worker_holds_no_transaction_while_a_handler_runs(app: Treadle, conn: Conn) -> None:
    release = anyio.Event()

    @app.task()
    async def hold() -> None:
        await release.wait()

    @app.task()
    def hold_thread() -> None:
        anyio.from_thread.run(release.wait)

    await hold.enqueue_many([{}, {}])
    await hold_thread.enqueue()

    async def running() -> bool:
        return await rows(conn, "select status from treadle.tasks") == [("running",)] * 3

    backends: set[tuple[object, ...]] = set()

    async def both_seen() -> bool:
        """Whether each was seen between two statements; at this moment it may send a heartbeat."""
        backends.update(
            await rows(
                conn,
                """
                select application_name, state, xact_start is not null, backend_xmin is not null
                from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()
                  and backend_type = 'client backend' and state <> 'active'
                """,
            )
        )
        return {name for name, *_ in backends} >= {"treadle-worker", "treadle-listener"}

    async with working(app, heartbeat_s=0.2):
        await until(running)
        await until(both_seen)
        release.set()

    assert {tuple(rest) for _, *rest in backends} == {("idle", False, False)}


async def test_a_transaction_lost_with_the_database_does_not_fail_the_task(
    app: Treadle, conn: Conn
) -> None:
    @app.task(max_attempts=2, retry={"strategy": "immediate"})
    async def unlucky(ctx: Context) -> None:
        async with ctx.transaction() as own:
            if ctx.attempt == 1:
                await own.execute("select pg_terminate_backend(pg_backend_pid())")

    handle = await unlucky.enqueue()

    await run_all(app)

    assert await row(conn, "select status from treadle.tasks where id = %s", handle.id) == (
        "completed",
    )
    assert await row(
        conn, "select class, outcome from treadle.attempts where task_id = %s", handle.id
    ) == ("unavailable", "failed")
