"""`treadle pruner` as a process: concurrent, killed, stopped, and with bad rows."""

import signal
from uuid import UUID

import pytest

from tests.drivers.processes.children import Conn, Spawn, rows, until, value
from treadle import Treadle

MANY = 300
KEEP = """select treadle.define_queue('default', '{"keep_completed_s": 0}')"""
FINISH = """
    with claims as (
      select array_agg(id) as ids, array_agg(claim_token) as tokens
      from treadle.claim_tasks('ghost', p_limit => 1000)
    )
    select count(*) from claims, treadle.complete_tasks(claims.ids, claims.tokens)
"""


async def finish(app: Treadle, conn: Conn, count: int) -> set[UUID]:
    """Tasks that are completed."""
    made = [await app.enqueue("nap", {"naps": [0]}) for _ in range(count)]
    await conn.execute("select treadle.register_agent('ghost')")
    assert await value(conn, FINISH) == count
    return {handle.id for handle in made}


async def history(conn: Conn) -> list[UUID]:
    return [row[0] for row in await rows(conn, "select id from treadle.task_history")]


@pytest.mark.requirement("B9")
async def test_pruners_side_by_side_archive_each_task_once_and_one_may_be_killed(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    first = await finish(app, conn, MANY)
    await conn.execute(KEEP)
    fast = {"prune_every_s": 0.2, "prune_batch": 20, "service_s": 0.1}

    pruners = [spawn("pruner", **fast) for _ in range(2)]
    await until(lambda: _some(conn))
    pruners[0].kill()

    await until(lambda: _archived(conn, first))
    # The other goes on with what ends later.
    second = await finish(app, conn, 5)
    await until(lambda: _archived(conn, first | second))
    assert await value(conn, "select count(*) from treadle.tasks") == 0
    assert pruners[1].running


async def _some(conn: Conn) -> bool:
    return len(await history(conn)) > 0


async def _archived(conn: Conn, wanted: set[UUID]) -> bool:
    found = await history(conn)
    assert len(found) == len(set(found))
    return set(found) == wanted


async def test_sigterm_ends_the_pruner_also_during_a_pause(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    await finish(app, conn, 50)
    await conn.execute(KEEP)
    # After each step it rests a thousand times as long.
    pruner = spawn("pruner", prune_share=0.001, prune_batch=1)
    await until(lambda: _some(conn))

    pruner.send(signal.SIGTERM)

    await pruner.logged("pruner.stopped", within=20)
    await until(lambda: not pruner.running, within=20)
    assert 0 < len(await history(conn)) < 50


async def test_a_bad_row_is_reported_once_and_the_others_go(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    made = await finish(app, conn, 10)
    bad = min(made)
    await conn.execute(
        """
        create function trap() returns trigger language plpgsql as $$
        begin
          raise exception 'this row is broken';
        end $$
        """
    )
    await conn.execute(
        f"""
        create trigger trap before delete on treadle.tasks
        for each row when (old.id = '{bad}') execute function trap()
        """.encode()
    )
    await conn.execute(KEEP)

    pruner = spawn("pruner", prune_every_s=0.1, service_s=0.1)

    line = await pruner.logged("pruner.row_skipped", task_id=str(bad))
    assert line["problem"] == "this row is broken"
    await until(lambda: _archived(conn, made - {bad}))
    more = await finish(app, conn, 2)
    await until(lambda: _archived(conn, (made | more) - {bad}))
    assert len(pruner.events("pruner.row_skipped")) == 1
    assert pruner.running


async def test_nothing_goes_until_an_age_is_set_and_then_at_the_next_round(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    made = await finish(app, conn, 3)
    pruner = spawn("pruner", "--once")
    await until(lambda: not pruner.running)
    assert await history(conn) == []
    pruner = spawn("pruner", prune_every_s=0.1, service_s=0.05)
    await pruner.logged("pruner.started")

    await conn.execute(KEEP)

    await until(lambda: _archived(conn, made))
    line = await pruner.logged("pruner.round_completed")
    assert (line["tasks"], line["kept"]) == (3, 0)
