"""A worker is paused past its lease: its late result counts only without another claim.

The order of events is made, not waited for. The handler of the paused worker ends when the test
creates a file, so it is still at work when the pause begins. No heartbeat of the paused worker is
due for a day: its answer always comes before it could learn that the claim is lost. The test ages
the lease in its stead.
"""

import signal
from pathlib import Path

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn, rows, until, value
from treadle import Treadle
from treadle.producer.handle import Handle

PAUSED = {"agent_id": "paused", "heartbeat_s": 86_400, "claim_ttl_s": 86_400, "slots": 1}
OTHER = {"agent_id": "other", "slots": 1}
STATE = "select status from treadle.tasks where id = %s"


async def pause_past_lease(conn: Conn, worker: Child, handle: Handle) -> None:
    """Pause the worker once its task is running, and let the lease run out."""
    await until(lambda: _is(conn, handle, "running"))
    await worker.pause()
    await conn.execute(
        "update treadle.tasks set lease_until = clock_timestamp() - interval '1 s' where id = %s",
        (handle.id,),
    )


def resume(worker: Child, ended: Path) -> None:
    """End the nap of the handler, then let the worker go on."""
    ended.touch()
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
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", **PAUSED)
    handle = await app.enqueue("rest", {"naps": [str(first), str(second)]})
    await pause_past_lease(conn, paused, handle)
    await take_back(conn, handle)
    spawn("worker", **OTHER)
    await until(lambda: _is(conn, handle, "running"))

    resume(paused, first)

    await paused.logged("task.result_stale", task_id=str(handle.id))
    assert await _is(conn, handle, "running")
    second.touch()
    assert await handle.result(timeout=40) == "other"
    assert await _ended(conn, handle) == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_refused_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", **PAUSED)
    handle = await app.enqueue("doze", {"naps": [str(tmp_path / "ended"), 0]})
    await pause_past_lease(conn, paused, handle)
    spawn("worker", **OTHER)
    assert await handle.result(timeout=40) == "other"
    before = await _ended(conn, handle)

    resume(paused, tmp_path / "ended")

    await paused.logged("task.result_stale", task_id=str(handle.id))
    assert await _ended(conn, handle) == before == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_transaction_is_rolled_back_after_another_has_finished(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    paused = spawn("worker", **PAUSED)
    handle = await app.enqueue("pay", {"naps": [str(tmp_path / "ended"), 0]})
    await pause_past_lease(conn, paused, handle)
    spawn("worker", **OTHER)
    assert await handle.result(timeout=40) == "other"

    resume(paused, tmp_path / "ended")

    await paused.logged("pay.refused", task_id=str(handle.id))
    assert await rows(conn, "select agent, attempt from effects") == [("other", 2)]
    assert await _ended(conn, handle) == ("completed", "other", 2)


@pytest.mark.requirement("F10")
async def test_a_late_completion_is_accepted_if_no_other_claim_was_made(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    spawn("reaper", service_s=0.5)
    paused = spawn("worker", **PAUSED)
    handle = await app.enqueue(
        "rest",
        {"naps": [str(tmp_path / "ended")]},
        retry={"strategy": "fixed", "initial_delay_s": 3600},
    )
    await pause_past_lease(conn, paused, handle)
    await take_back(conn, handle)
    assert await value(conn, STATE, handle.id) == "retrying"

    resume(paused, tmp_path / "ended")

    assert await handle.result(timeout=40) == "paused"
    assert await _ended(conn, handle) == ("completed", "paused", 1)
    assert paused.events("task.result_stale") == []


async def _is(conn: Conn, handle: Handle, wanted: str) -> bool:
    return bool(await value(conn, STATE, handle.id) == wanted)


async def _ended(conn: Conn, handle: Handle) -> tuple[object, ...]:
    (found,) = await rows(
        conn, "select status, completed_by, attempt from treadle.tasks where id = %s", handle.id
    )
    return found
