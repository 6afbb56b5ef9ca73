"""A worker paused past its lease: its late answer counts only if nobody has taken over."""

import signal

import pytest

from tests.process.support import Child, Conn, Spawn, rows, until, value
from treadle import Treadle
from treadle.handles import Handle

# A lease of 2.1 seconds.
LEASED = {"heartbeat_s": 0.7, "claim_ttl_s": 2, "slots": 1}
STATE = "select status from treadle.tasks where id = %s"


async def start_and_pause(conn: Conn, worker: Child, handle: Handle) -> None:
    """Pause the worker once it has begun, for longer than its handler needs."""
    await until(lambda: _is(conn, handle, "running"))
    await worker.pause()


async def take_back(conn: Conn, handle: Handle) -> None:
    """Wait until the reaper has ended the first attempt."""

    async def taken() -> bool:
        return await rows(
            conn, "select class, reason from treadle.attempts where task_id = %s", handle.id
        ) == [("crash", "heartbeat_timeout")]

    await until(taken)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_refused_while_another_works(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue("rest", {"naps": [1, 1.5]})
    await start_and_pause(conn, paused, handle)
    await take_back(conn, handle)
    spawn("worker", agent_id="other", **LEASED)
    await until(lambda: _is(conn, handle, "running"))

    paused.send(signal.SIGCONT)

    await paused.logged("task.stale_answer", task_id=str(handle.id))
    assert await _is(conn, handle, "running")
    assert await handle.result(timeout=10) == "other"
    assert await _ended(conn, handle) == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_refused_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue("doze", {"naps": [1, 0]})
    await start_and_pause(conn, paused, handle)
    spawn("worker", agent_id="other", **LEASED)
    assert await handle.result(timeout=10) == "other"
    before = await _ended(conn, handle)

    paused.send(signal.SIGCONT)

    await paused.logged("task.stale_answer", task_id=str(handle.id))
    assert await _ended(conn, handle) == before == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_transaction_is_rolled_back_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue("pay", {"naps": [1, 0]})
    await start_and_pause(conn, paused, handle)
    spawn("worker", agent_id="other", **LEASED)
    assert await handle.result(timeout=10) == "other"

    paused.send(signal.SIGCONT)

    await paused.logged("pay.refused", task_id=str(handle.id))
    assert await rows(conn, "select agent, attempt from effects") == [("other", 2)]
    assert await _ended(conn, handle) == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_accepted_when_nobody_took_over(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue(
        "rest", {"naps": [1]}, retry={"strategy": "fixed", "initial_delay_s": 60}
    )
    await start_and_pause(conn, paused, handle)
    await take_back(conn, handle)
    assert await value(conn, STATE, handle.id) == "retrying"

    paused.send(signal.SIGCONT)

    assert await handle.result(timeout=10) == "paused"
    assert await _ended(conn, handle) == ("completed", "paused", 1)
    assert paused.events("task.stale_answer") == []


async def _is(conn: Conn, handle: Handle, wanted: str) -> bool:
    return bool(await value(conn, STATE, handle.id) == wanted)


async def _ended(conn: Conn, handle: Handle) -> tuple[object, ...]:
    (found,) = await rows(
        conn, "select status, completed_by, attempt from treadle.tasks where id = %s", handle.id
    )
    return found
