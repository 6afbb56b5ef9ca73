"""A dispatcher sends each prompt to the first idle agent, in order, and stores the result."""

import signal
from typing import Any

import pytest

from tests.drivers.processes.children import Conn, Spawn, rows
from tests.drivers.processes.push_agents import (
    PATIENT,
    QUICK,
    Agents,
    ended,
    entry,
    outcomes,
    submit,
    until,
)


@pytest.mark.requirement("Q6")
async def test_a_prompt_goes_to_an_agent_with_all_its_fields_and_its_result_comes_back(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None, result={"said": "hello\x00", "n": 3})
    child = spawn("dispatcher", **QUICK)
    request: dict[str, Any] = {
        "prompt": "Say hello",
        "model": "sonnet",
        "timeout_seconds": 60,
        "session_id": "s-0",
        "project": {"id": "p"},
        "env": {"A": "1"},
        "thinking": False,
    }

    [queue_id] = await submit(conn, **request)

    await until(lambda: child.events("queue.dispatch_success", queue_id=queue_id))
    [line] = agent.lines()
    assert line["request"] == {**request, "queue_id": queue_id}
    assert line["key"] == f"{queue_id}.1"
    working = await entry(conn, queue_id)
    assert (working["state"], working["agent_url"], working["task_id"], working["attempts"]) == (
        "working",
        agent.url,
        line["task_id"],
        1,
    )
    agent.set(work_s=0)
    await until(lambda: ended(conn, queue_id))
    assert await rows(conn, "select output from treadle.tasks") == [
        ({"said": "hello\u2400", "n": 3},)
    ]
    assert await outcomes(conn, queue_id) == ["completed"]
    await until(lambda: child.events("queue.task_completed", state="completed"))
    assert child.events("queue.dispatch", queue_id=queue_id, agent=agent.url)


@pytest.mark.requirement("Q5")
async def test_one_agent_gets_prompts_in_the_order_in_which_they_came(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a")
    queue_ids = await submit(conn, 10)

    spawn("dispatcher", **QUICK)

    await until(lambda: ended(conn, *queue_ids))
    assert agent.executed() == queue_ids


@pytest.mark.requirement("Q5")
async def test_the_first_agent_that_is_idle_and_healthy_gets_the_next_prompt(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    names = ("a", "b", "c", "d", "e")
    hangs, busy, broken, first, second = (agents(name, work_s=None) for name in names)
    hangs.set(status="hang")
    busy.set(status="busy")
    broken.set(status=503)
    child = spawn("dispatcher", **PATIENT)
    await child.logged("agent.unreachable", agent="a", within=30)

    [one] = await submit(conn)
    await until(lambda: first.executed() == [one])
    [two] = await submit(conn)
    await until(lambda: second.executed() == [two])
    [three] = await submit(conn)
    busy.set(status=None)

    await until(lambda: busy.executed() == [three])
    assert hangs.executed() == broken.executed() == []
    broken.set(status=None)
    [four] = await submit(conn)
    await until(lambda: broken.executed() == [four])


@pytest.mark.requirement("Q5")
async def test_an_agent_that_stays_busy_with_nothing_of_ours_is_named_once_with_its_word(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", status={"status": "ok"})
    child = spawn("dispatcher", **QUICK)
    [queue_id] = await submit(conn)

    said = await child.logged("agent.not_idle", within=30)

    assert (said["agent"], said["said"]) == ("a", "ok")
    polls = agent.polls
    await until(lambda: agent.polls > polls + 20)
    assert len(child.events("agent.not_idle")) == 1
    agent.set(status={"status": "ok", "idle": True})
    await until(lambda: ended(conn, queue_id))


@pytest.mark.requirement("Q5")
async def test_an_agent_that_is_busy_while_nothing_waits_is_not_named(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    busy, free = agents("a", status="busy"), agents("b")
    child = spawn("dispatcher", **QUICK)
    await child.logged("dispatcher.started", within=30)

    for _ in range(6):
        [queue_id] = await submit(conn)
        await until(lambda queue_id=queue_id: ended(conn, queue_id))

    assert (busy.polls > 5, len(free.executed())) == (True, 6)
    assert not child.events("agent.not_idle")


@pytest.mark.requirement("Q5")
async def test_three_dispatchers_and_three_agents_execute_thirty_prompts_once_each(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    trio = [agents(name) for name in "abc"]
    children = [spawn("dispatcher", **QUICK) for _ in range(3)]
    for each in children:
        await each.logged("dispatcher.started", within=30)

    queue_ids = await submit(conn, 30)

    await until(lambda: ended(conn, *queue_ids))
    executed = [queue_id for agent in trio for queue_id in agent.executed()]
    assert sorted(executed) == sorted(queue_ids)
    assert all(agent.executed() for agent in trio)
    await until(lambda: sum(len(each.events("queue.task_completed")) for each in children) == 30)


@pytest.mark.requirement("Q6")
async def test_cancelling_a_prompt_also_cancels_it_at_its_agent(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    child = spawn("dispatcher", **{**QUICK, "dispatch_lease_s": 60, "track_every_s": 60})
    [queue_id] = await submit(conn)
    await until(lambda: child.events("queue.dispatch_success"))

    await conn.execute("select treadle.cancel_push(%s)", (queue_id,))

    task_id = agent.lines()[0]["task_id"]
    await until(lambda: f"CANCEL {task_id}" in agent.requests)
    assert (await entry(conn, queue_id))["state"] == "cancelled"
    await until(lambda: outcomes_are(conn, queue_id, "cancelled"))
    [other] = await submit(conn)
    await until(lambda: agent.executed() == [queue_id, other])


@pytest.mark.requirement("Q9")
async def test_a_dispatcher_that_ends_leaves_its_prompts_to_the_next_at_once(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    settings = {**QUICK, "dispatch_lease_s": 600}
    first = spawn("dispatcher", **settings)
    [queue_id] = await submit(conn)
    await until(lambda: first.events("queue.dispatch_success"))

    first.send(signal.SIGTERM)

    assert await first.exit_code(within=30) == 0
    second = spawn("dispatcher", **settings)
    await second.logged("queue.taken_over", within=30, queue_id=queue_id)
    agent.set(work_s=0)
    await until(lambda: ended(conn, queue_id))
    assert agent.executed() == [queue_id]


async def test_an_agent_at_a_private_address_is_not_connected_to_without_permission(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a")
    await conn.execute("select treadle.define_push_agent('a', %s)", (agent.url,))
    [queue_id] = await submit(conn)

    child = spawn("dispatcher", **QUICK)

    said = await child.logged("agent.unreachable", within=30, agent="a")
    assert said["error"] == "the address is private: the agent needs allow_private"
    assert (agent.executed(), (await entry(conn, queue_id))["attempts"]) == ([], 0)
    await conn.execute("select treadle.define_push_agent('a', %s, true)", (agent.url,))
    await until(lambda: ended(conn, queue_id))


async def outcomes_are(conn: Conn, queue_id: str, *expected: str) -> bool:
    return await outcomes(conn, queue_id) == list(expected)
