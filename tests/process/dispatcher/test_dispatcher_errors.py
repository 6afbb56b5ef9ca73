"""The response of an agent decides: retry, requeue or fail; no prompt is lost."""

import signal
from typing import Any

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn
from tests.drivers.processes.push_agents import (
    PATIENT,
    QUICK,
    Agents,
    Gate,
    PushAgent,
    ended,
    entry,
    outcomes,
    pass_silence,
    submit,
    until,
)

# answers of the agent -> state, attempts, outcomes of the submissions, executions
Table = dict[str, tuple[list[Any], str, int, list[str], int]]
TABLE: Table = {
    "a client error": ([400], "failed", 1, ["refused"], 0),
    "nothing there": ([404], "failed", 1, ["refused"], 0),
    "a server error": ([500], "completed", 2, ["error", "completed"], 1),
    "a redirect": ([301], "completed", 2, ["error", "completed"], 1),
    "three server errors": ([500, 503, 502], "failed", 3, ["error"] * 3, 0),
    "busy": ([409], "completed", 1, ["busy", "completed"], 1),
    "busy three times": ([409, 409, 409], "completed", 1, ["busy"] * 3 + ["completed"], 1),
    "a connection that breaks": (["drop"], "completed", 2, ["unsure", "completed"], 1),
    "three that break": (["drop"] * 3, "failed", 3, ["unsure"] * 3, 0),
    "a break, then a server error": (
        ["drop", 500],
        "completed",
        3,
        ["unsure", "error", "completed"],
        1,
    ),
    "taken and a broken connection": (["take_then_drop"], "completed", 1, ["completed"], 1),
    "taken without an id": (["nameless"], "completed", 1, ["completed"], 1),
}
# A dispatcher that does not wait for long is enough for these.
SILENT: Table = {
    "no answer": (["hang"], "completed", 2, ["unsure", "completed"], 1),
    "no answer three times": (["hang"] * 3, "failed", 3, ["unsure"] * 3, 0),
    "taken and no answer": (["take_then_hang"], "completed", 1, ["completed"], 1),
}


async def play(conn: Conn, agent: PushAgent, child: Child, table: Table) -> None:
    """Submit a prompt for each row, and see that it ends as the row says."""
    for what, (answers, state, attempts, ends, executions) in table.items():
        agent.set(answers=answers)

        [queue_id] = await submit(conn)

        await until(lambda queue_id=queue_id, state=state: ended(conn, queue_id, state=state))
        found = await entry(conn, queue_id)
        assert (found["attempts"], await outcomes(conn, queue_id)) == (attempts, ends), what
        assert agent.executed().count(queue_id) == executions, what
        sent = [each for each in agent.requests if each.startswith(f"POST {queue_id}")]
        assert len(sent) == len(ends), what
        if state == "failed" and isinstance(answers[-1], int):
            assert f"answered {answers[-1]}: as told" in found["last_error"], what
        await until(lambda: not _open(child))


@pytest.mark.requirement("Q7")
async def test_an_agent_that_does_not_answer_in_time_is_asked_again(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a")
    child = spawn("dispatcher", **{**PATIENT, "queue_dispatch_timeout_s": 1})

    await play(conn, agent, child, SILENT)

    assert child.events("queue.agent_silent", error="no response within 1 s")


@pytest.mark.requirement("Q7")
@pytest.mark.requirement("Q14")
async def test_every_answer_has_its_consequence(conn: Conn, spawn: Spawn, agents: Agents) -> None:
    agent = agents("a")
    child = spawn("dispatcher", **PATIENT)

    await play(conn, agent, child, TABLE)

    assert {line["level"] for line in child.events("queue.dispatch_failed")} == {"warning"}
    failed = [
        (line["attempt"], line["error"], line.get("final", False))
        for line in child.events("queue.dispatch_failed")
    ]
    assert failed[:2] == [
        ("1/3", "answered 400: as told", True),
        ("1/3", "answered 404: as told", True),
    ]
    assert failed[4:8] == [
        ("1/3", "answered 500: as told", False),
        ("2/3", "answered 503: as told", False),
        ("3/3", "answered 502: as told", True),
        ("1/3", "agent busy", False),
    ]


def _open(child: Child) -> int:
    """Submissions without a recorded outcome."""
    ends = ("queue.task_completed", "queue.task_lost", "queue.dispatch_failed")
    return len(child.events("queue.dispatch")) - sum(len(child.events(name)) for name in ends)


@pytest.mark.requirement("Q7")
async def test_a_busy_agent_sends_a_prompt_to_the_back_of_the_queue(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", answers=[409])
    first, second, third = await submit(conn, 3)

    spawn("dispatcher", **PATIENT)

    await until(lambda: ended(conn, first, second, third))
    assert agent.executed() == [second, third, first]
    assert (await entry(conn, first))["attempts"] == 1


@pytest.mark.requirement("Q6")
async def test_an_agent_can_report_failure_or_cancellation(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", ends="failed")
    spawn("dispatcher", **QUICK)
    [failed] = await submit(conn)
    await until(lambda: ended(conn, failed, state="failed"))

    agent.set(ends="cancelled")
    [cancelled] = await submit(conn)

    await until(lambda: ended(conn, cancelled, state="cancelled"))
    assert (await entry(conn, failed))["last_error"] == "as told"
    assert agent.executed() == [failed, cancelled]


async def test_a_result_may_be_large_but_not_larger_than_an_output(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", result="x" * 2**20)
    spawn("dispatcher", **{**QUICK, "queue_dispatch_timeout_s": 20})
    [large] = await submit(conn)
    await until(lambda: ended(conn, large))

    agent.set(result="x" * 17 * 2**20)
    [too_large] = await submit(conn)

    await until(lambda: ended(conn, too_large, state="failed"))
    assert (
        "larger than the maximum size of an output" in (await entry(conn, too_large))["last_error"]
    )


@pytest.mark.requirement("Q7")
async def test_sending_to_an_agent_that_has_disappeared_costs_an_attempt(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    first, gate = agents("a"), Gate(conn)
    await gate.build()
    await gate.close("claimed")
    # It keeps the submission for as long as it takes to start another agent.
    spawn("dispatcher", **{**QUICK, "dispatch_lease_s": 60})
    [queue_id] = await submit(conn)
    await gate.reached()
    first.kill()
    second = agents("b")

    await gate.open()

    await until(lambda: ended(conn, queue_id))
    assert await outcomes(conn, queue_id) == ["unreachable", "completed"]
    assert ((await entry(conn, queue_id))["attempts"], second.executed()) == (2, [queue_id])


@pytest.mark.requirement("Q7")
async def test_during_a_partition_a_prompt_waits_for_its_agent_before_it_moves_on(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    first, gate = agents("a"), Gate(conn)
    await gate.build()
    await gate.close("claimed")
    child = spawn("dispatcher", **{**QUICK, "dispatch_lease_s": 60, "dispatch_unsure_s": 600})
    [queue_id] = await submit(conn)
    await gate.reached()
    first.send(signal.SIGSTOP)
    second = agents("b")

    await gate.open()

    # It is asked again, and only then is it seen that nothing came of the first silence.
    await until(lambda: len(child.events("queue.agent_silent", queue_id=queue_id)) > 1)
    assert second.executed() == []
    assert (await entry(conn, queue_id))["state"] == "dispatching"
    await pass_silence(conn)
    await until(lambda: ended(conn, queue_id))
    assert await outcomes(conn, queue_id) == ["unsure", "completed"]
    assert ((await entry(conn, queue_id))["attempts"], second.executed()) == (2, [queue_id])


@pytest.mark.requirement("Q8")
async def test_an_agent_that_was_restarted_has_lost_the_task_and_it_is_queued_again(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    child = spawn("dispatcher", **QUICK)
    [queue_id] = await submit(conn)
    await until(lambda: child.events("queue.dispatch_success"))

    agent.kill()
    agent.start()

    await until(lambda: ended(conn, queue_id))
    assert await outcomes(conn, queue_id) == ["lost", "completed"]
    assert [line["key"] for line in agent.lines()] == [f"{queue_id}.1", f"{queue_id}.2"]
    [lost] = child.events("queue.task_lost")
    assert (lost["attempt"], lost["queue_id"]) == ("1/3", queue_id)


@pytest.mark.requirement("Q8")
async def test_an_agent_that_works_may_be_out_of_reach_for_a_while_but_not_for_ever(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None)
    child = spawn("dispatcher", **QUICK, dispatch_silent_s=600)
    [queue_id] = await submit(conn)
    await until(lambda: child.events("queue.dispatch_success"))
    agent.set(looks=503)
    await until(lambda: child.events("queue.agent_silent"))
    agent.set(looks=None)
    await until(lambda: agent.requests[-1:] == [f"GET {agent.lines()[0]['task_id']}"])
    assert await outcomes(conn, queue_id) == [None]

    agent.send(signal.SIGSTOP)

    async def is_lost() -> bool:
        # Again and again: the last answer may have been on its way.
        await pass_silence(conn)
        return bool(child.events("queue.task_lost", outcome="silent", attempt="1/3"))

    await until(is_lost)
    assert (await entry(conn, queue_id))["state"] == "pending"
    agent.send(signal.SIGCONT)
    agent.set(work_s=0)
    # The same key: it remembers, and executes nothing twice.
    await until(lambda: ended(conn, queue_id))
    assert agent.executed() == [queue_id]
    assert await outcomes(conn, queue_id) == ["silent", "completed"]
