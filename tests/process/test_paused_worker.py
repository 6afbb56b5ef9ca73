"""A worker paused past its lease: its late answer counts only if nobody has taken over."""

import signal

import anyio
import pytest

from tests.process.support import Child, Conn, Spawn, rows, until, value
from treadle import Treadle
from treadle.handles import Handle

# A lease of 2.1 seconds.
LEASED = {"heartbeat_s": 0.7, "claim_ttl_s": 2, "slots": 1}
OTHER = {"slots": 1}
NAP_S = 4.0
STATE = "select status from treadle.tasks where id = %s"


async def start_and_pause(conn: Conn, worker: Child, handle: Handle) -> float:
    """Pause the worker once it has begun; returns the moment at which its nap is over."""
    await until(lambda: _is(conn, handle, "running"))
    await worker.pause()
    return anyio.current_time() + NAP_S


async def go_on(worker: Child, rested: float) -> None:
    """Let it go on after its nap is over: it answers before it looks at its claim."""
    await anyio.sleep_until(rested)
    worker.send(signal.SIGCONT)


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
    handle = await app.enqueue("rest", {"naps": [NAP_S, 5]})
    rested = await start_and_pause(conn, paused, handle)
    await take_back(conn, handle)
    spawn("worker", agent_id="other", **OTHER)
    await until(lambda: _is(conn, handle, "running"))

    await go_on(paused, rested)

    await paused.logged("task.stale_answer", task_id=str(handle.id))
    assert await _is(conn, handle, "running")
    assert await handle.result(timeout=40) == "other"
    assert await _ended(conn, handle) == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_refused_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue("doze", {"naps": [NAP_S, 0]})
    rested = await start_and_pause(conn, paused, handle)
    spawn("worker", agent_id="other", **OTHER)
    assert await handle.result(timeout=40) == "other"
    before = await _ended(conn, handle)

    await go_on(paused, rested)

    await paused.logged("task.stale_answer", task_id=str(handle.id))
    assert await _ended(conn, handle) == before == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_transaction_is_rolled_back_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", agent_id="paused", **LEASED)
    handle = await app.enqueue("pay", {"naps": [NAP_S, 0]})
    rested = await start_and_pause(conn, paused, handle)
    spawn("worker", agent_id="other", **OTHER)
    assert await handle.result(timeout=40) == "other"

    await go_on(paused, rested)

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
        "rest", {"naps": [NAP_S]}, retry={"strategy": "fixed", "initial_delay_s": 60}
    )
    rested = await start_and_pause(conn, paused, handle)
    await take_back(conn, handle)
    assert await value(conn, STATE, handle.id) == "retrying"

    await go_on(paused, rested)

    assert await handle.result(timeout=40) == "paused"
    assert await _ended(conn, handle) == ("completed", "paused", 1)
    assert paused.events("task.stale_answer") == []


async def _is(conn: Conn, handle: Handle, wanted: str) -> bool:
    return bool(await value(conn, STATE, handle.id) == wanted)


async def _ended(conn: Conn, handle: Handle) -> tuple[object, ...]:
    (found,) = await rows(
        conn, "select status, completed_by, attempt from treadle.tasks where id = %s", handle.id
    )
    return found
