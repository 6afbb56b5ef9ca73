"""A worker is killed while its task waits: the task holds no claim and is not affected."""

import pytest

from tests.drivers.processes.children import Conn, Spawn, rows, until, value
from treadle import Treadle
from treadle.producer.handle import Handle

QUICK = {"heartbeat_s": 0.4, "claim_ttl_s": 1, "slots": 3}
WAITS = "select status, answered_by from treadle.waits"
EFFECTS = "select what, agent, attempt from effects where task_id = %s order by id"
ATTEMPTS = """
    select attempt, agent_id, outcome, reason from treadle.attempts
    where task_id = %s order by ended_at
"""


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("answered", ["before another worker is there", "after it is there"])
async def test_a_question_survives_the_worker_that_asked_it(
    app: Treadle, conn: Conn, spawn: Spawn, answered: str
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    handle = await app.enqueue("confer")
    await until(lambda: _is(handle, "blocked"))

    first.kill()
    # Long enough for the reaper to mark the worker offline: there is no claim to reap.
    await until(lambda: _is_gone(conn, "first"))
    assert await handle.status() == "blocked"
    if answered == "before another worker is there":
        await _answer(conn, spawn)
        assert await handle.status() == "ready"
    second = spawn("worker", agent_id="second", slots=3)
    await second.logged("worker.started")
    if answered == "after it is there":
        await _answer(conn, spawn)

    assert await handle.result(timeout=40) == ["yes", "ada"]
    assert await rows(conn, EFFECTS, handle.id) == [("before", "first", 1), ("after", "second", 1)]
    # Waiting costs no attempt, and neither did the kill.
    assert await rows(conn, ATTEMPTS, handle.id) == [(1, "first", "suspended", "blocked")]


@pytest.mark.requirement("B2")
async def test_a_question_of_a_killed_attempt_is_asked_once_and_keeps_its_answer(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    handle = await app.enqueue("ponder", {"naps": [3600, 0]})
    await until(lambda: _has_asked(conn))

    first.kill()
    await _answer(conn, spawn)
    spawn("worker", agent_id="second", slots=3)

    assert await handle.result(timeout=40) == "ada"
    assert await rows(conn, "select status, answered_by from treadle.waits") == [
        ("answered", "ada")
    ]
    assert await rows(conn, ATTEMPTS, handle.id) == [(1, "first", "failed", "heartbeat_timeout")]


@pytest.mark.requirement("F5")
async def test_subtasks_survive_the_worker_that_ran_them_and_their_parent(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    handle = await app.enqueue("delegate", {"naps": [[0], [3600, 0]]})
    await until(lambda: _one_has_ended(conn, handle))

    first.kill()
    spawn("worker", agent_id="second", slots=3)

    assert await handle.result(timeout=40) == ["first", "second"]
    assert await rows(conn, EFFECTS, handle.id) == [("before", "first", 1), ("after", "second", 1)]
    assert await rows(conn, ATTEMPTS, handle.id) == [(1, "first", "suspended", "pending")]
    # The subtask that was running is the only one that crashed; none was made twice.
    assert await rows(
        conn,
        """
        select tasks.attempt, tasks.status, tasks.completed_by from treadle.tasks
        where tasks.parent_id = %s order by tasks.id
        """,
        handle.id,
    ) == [(1, "completed", "first"), (2, "completed", "second")]


async def _answer(conn: Conn, spawn: Spawn) -> None:
    """As a person does it."""
    wait_id = await value(conn, "select id from treadle.waits where status = 'open'")
    program = spawn("waits", "answer", str(wait_id), "yes", "--actor", "ada")
    assert await program.exit_code() == 0


async def _is(handle: Handle, status: str) -> bool:
    return await handle.status() == status


async def _is_gone(conn: Conn, agent: str) -> bool:
    found = await rows(conn, "select status from treadle.agents where id = %s", agent)
    return found == [("offline",)]


async def _has_asked(conn: Conn) -> bool:
    return bool(await rows(conn, "select from effects where what = 'asked'"))


async def _one_has_ended(conn: Conn, parent: Handle) -> bool:
    query = "select status from treadle.tasks where parent_id = %s order by id"
    children = [status for (status,) in await rows(conn, query, parent.id)]
    return children == ["completed", "running"] and await parent.status() == "pending"
