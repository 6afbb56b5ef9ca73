"""A dispatcher may be killed at any point: no prompt is lost, and none is executed twice."""

import signal
from functools import partial

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn, rows
from tests.drivers.processes.push_agents import (
    QUICK,
    Agents,
    Gate,
    PushAgent,
    ended,
    entry,
    outcomes,
    submit,
    until,
)


async def kill_at(point: str, child: Child, agent: PushAgent, gate: Gate, queue_id: str) -> None:
    """Kill a dispatcher that gets hold of a prompt, at one point of its way."""
    if point == "sent":
        assert await child.exit_code(within=30) == -signal.SIGKILL
    elif point == "working":
        await child.logged("queue.dispatch_success", queue_id=queue_id, within=30)
        child.kill()
    else:
        await gate.reached()
        child.kill()
        # What had reached the database counts; what had not is as if never said.
        await gate.open(forget=point in ("answered", "ended"))


async def let(conn: Conn, agent: PushAgent, status: str) -> None:
    """Said in the database: nobody who asked the agent a moment ago can send it anything."""
    await rows(conn, "select treadle.set_agent_status(%s, %s)", agent.name, status)


@pytest.mark.requirement("Q9")
@pytest.mark.parametrize(
    ("remembers", "points"),
    [
        ("all", ["claimed", "sent", "answered", "working", "ended"]),
        ("keys", ["sent", "answered"]),
    ],
)
async def test_killed_at_any_point_the_next_asks_the_agent_and_nothing_is_executed_twice(
    conn: Conn, spawn: Spawn, agents: Agents, remembers: str, points: list[str]
) -> None:
    agent, gate = agents("a", remembers=remembers, work_s=None), Gate(conn)
    other = agents("b")
    await gate.build()
    child = spawn("dispatcher", **QUICK)
    done: list[str] = []
    for point in points:
        await let(conn, other, "draining")
        if point in ("claimed", "answered", "ended"):
            await gate.close(point)
        agent.set(
            work_s=0 if point == "ended" else None,
            answers=["kill"] if point == "sent" else [],
            victim=child.pid,
        )
        [queue_id] = await submit(conn)

        await kill_at(point, child, agent, gate, queue_id)

        state = (await entry(conn, queue_id))["state"]
        assert state in ("dispatching", "working"), point
        # Another idle agent does not get it: only this agent is asked.
        await let(conn, other, "active")
        child = spawn("dispatcher", **QUICK)
        await child.logged("queue.taken_over", within=30, queue_id=queue_id)
        agent.set(work_s=0)
        await until(partial(ended, conn, queue_id))
        done.append(queue_id)
        assert agent.executed() == done, point
        assert await outcomes(conn, queue_id) == ["completed"], point
        assert (await entry(conn, queue_id))["attempts"] == 1, point
    assert other.executed() == []


@pytest.mark.requirement("Q9")
async def test_findings_that_were_not_recorded_are_reported_again(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent, gate = agents("a"), Gate(conn)
    await gate.build()
    child = spawn("dispatcher", **{**QUICK, "dispatch_lease_s": 60})
    for number, point in enumerate(("claimed", "answered", "ended"), start=1):
        await gate.close(point)
        [queue_id] = await submit(conn)
        await gate.reached()

        await gate.open(forget=True)

        await until(partial(ended, conn, queue_id))
        assert [agent.executed().count(queue_id), len(agent.executed())] == [1, number], point
        assert (await outcomes(conn, queue_id))[-1] == "completed", point
        # It kept the answer, and did not have to ask for it by our id.
        assert f"GET {queue_id}" not in agent.requests, point
    assert not child.events("queue.taken_over")


@pytest.mark.requirement("Q9")
async def test_the_reaper_does_not_reap_submissions_while_no_dispatcher_runs(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    child = spawn("dispatcher", **QUICK)
    [queue_id] = await submit(conn)
    await until(lambda: child.events("queue.dispatch_success"))
    child.kill()
    # An hour goes by for everybody.
    await conn.execute(
        """
        update treadle.tasks
        set
          lease_until = lease_until - interval '1 hour',
          started_at = started_at - interval '1 hour'
        """
    )
    await conn.execute(
        "update treadle.dispatches set lease_until = lease_until - interval '1 hour'"
    )

    assert await rows(conn, "select id from treadle.reap_claims()") == []

    spawn("dispatcher", **QUICK)
    agent.set(work_s=0)
    await until(lambda: ended(conn, queue_id))
    assert agent.executed() == [queue_id]


@pytest.mark.requirement("Q9")
async def test_a_dispatcher_that_was_stopped_for_long_changes_nothing_any_more(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    first = spawn("dispatcher", **QUICK)
    [queue_id] = await submit(conn)
    await until(lambda: first.events("queue.dispatch_success"))
    await first.pause()
    second = spawn("dispatcher", **{**QUICK, "dispatch_lease_s": 60})
    await second.logged("queue.taken_over", within=30)

    agent.kill()
    first.send(signal.SIGCONT)
    agent.start(work_s=None)

    # Both see that the task is lost; one of them may say so.
    await until(lambda: len(agent.executed()) == 2)
    agent.set(work_s=0)
    await until(lambda: ended(conn, queue_id))
    assert await outcomes(conn, queue_id) == ["lost", "completed"]
    assert (await entry(conn, queue_id))["attempts"] == 2
    assert [len(each.events("queue.task_lost")) for each in (first, second)] == [0, 1]


@pytest.mark.requirement("Q9")
async def test_a_dispatcher_that_was_stopped_before_it_sent_sends_nothing_after_it_was_replaced(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent, gate = agents("a", remembers="nothing"), Gate(conn)
    await gate.build()
    await gate.close("claimed")
    first = spawn("dispatcher", **QUICK)
    [queue_id] = await submit(conn)
    await gate.reached()
    await first.pause()
    await gate.open()
    second = spawn("dispatcher", **QUICK)
    await until(lambda: ended(conn, queue_id))

    first.send(signal.SIGCONT)

    await first.logged("queue.lease_lost", queue_id=queue_id, within=30)
    second.kill()
    [other] = await submit(conn)
    await until(lambda: ended(conn, other))
    assert agent.executed() == [queue_id, other]
