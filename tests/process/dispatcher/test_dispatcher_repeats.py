"""A prompt that an agent may have is repeated there; an agent that rejects is skipped a while."""

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
    pass_silence,
    submit,
    until,
)

# For agents that never answer: nothing is gained by waiting for them.
HASTY = {**QUICK, "queue_dispatch_timeout_s": 0.5, "dispatch_unsure_s": 0.5}
# Between the end of a submission and the next one to the same agent.
GAPS = """
    select gap
    from (
      select
        extract(
          epoch from sent_at - lag(ended_at) over (partition by agent_id order by sent_at)
        )::float8 as gap
      from treadle.dispatches
    ) as gaps
    where gap is not null
"""


@pytest.mark.requirement("Q7")
async def test_an_agent_that_is_busy_with_this_very_prompt_uses_up_its_attempts(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    # It always says idle, never answers the first time, and knows neither ids nor keys.
    agent = agents("a", status=200, remembers="nothing", work_s=None, answers=["take_then_hang"])
    spawn("dispatcher", **HASTY)

    [queue_id] = await submit(conn)

    await until(lambda: ended(conn, queue_id, state="failed"))
    assert await outcomes(conn, queue_id) == ["unsure"] * 3
    assert ((await entry(conn, queue_id))["attempts"], agent.executed()) == (3, [queue_id])
    assert (await entry(conn, queue_id))["last_error"] == "answered 409: busy"


@pytest.mark.requirement("Q7")
async def test_an_agent_that_accepts_without_an_id_gets_each_attempt_once(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", remembers="nothing", answers=["nameless"] * 100)
    spawn("dispatcher", **PATIENT)

    [queue_id] = await submit(conn)

    await until(lambda: ended(conn, queue_id, state="failed"))
    assert (await outcomes(conn, queue_id), agent.executed()) == (["error"] * 3, [queue_id] * 3)
    said = (await entry(conn, queue_id))["last_error"]
    assert said == "answered 201 without a task_id that can be used"


@pytest.mark.requirement("Q7")
@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        ("half", ["unsure", "completed"]),
        ("half_then_hang", ["unsure", "completed"]),
        ("nameless", ["error", "completed"]),
        ("take_then_502", ["error", "completed"]),
    ],
)
async def test_an_agent_that_remembers_keys_executes_once_even_if_its_response_is_lost(
    conn: Conn, spawn: Spawn, agents: Agents, answer: str, ends: list[str]
) -> None:
    agent = agents("a", remembers="keys", answers=[answer])
    spawn("dispatcher", **QUICK)

    [queue_id] = await submit(conn)

    await until(lambda: ended(conn, queue_id))
    assert (await outcomes(conn, queue_id), agent.executed()) == (ends, [queue_id])
    sent = [each for each in agent.requests if each.startswith("POST")]
    assert sent == [f"POST {queue_id}.1"] * 2
    # What the agent has opened.
    assert (await entry(conn, queue_id))["session_id"] == "s-1"


@pytest.mark.requirement("Q7")
async def test_an_agent_that_forgets_and_never_answers_executes_it_three_times_at_most(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", remembers="nothing", work_s=1, answers=["take_then_hang"] * 1000)
    spawn("dispatcher", **HASTY)

    [queue_id] = await submit(conn)

    await until(lambda: ended(conn, queue_id, state="failed"))
    assert await outcomes(conn, queue_id) == ["unsure"] * 3
    assert len(agent.executed()) <= 3


@pytest.mark.requirement("Q7")
@pytest.mark.parametrize(("answer", "outcome"), [(400, "unsure"), (409, "unsure"), (500, "error")])
async def test_a_rejected_repeat_counts_and_does_not_end_a_running_execution(
    conn: Conn, spawn: Spawn, agents: Agents, answer: int, outcome: str
) -> None:
    modes: dict[str, Any] = {"status": 200, "remembers": "nothing", "work_s": None}
    agent = agents("a", answers=["take_then_hang", *[answer] * 100], **modes)
    spawn("dispatcher", **HASTY)
    [queue_id] = await submit(conn)
    # More than it takes to see both, however slow the machine is.
    await conn.execute("update treadle.tasks set max_attempts = 1000")

    async def is_refused() -> bool:
        return outcome in (await outcomes(conn, queue_id))[1:]

    await until(is_refused)
    assert (await entry(conn, queue_id))["last_error"] == f"answered {answer}: as told"
    agent.set(remembers="all", work_s=0)
    await until(lambda: ended(conn, queue_id))
    ends = await outcomes(conn, queue_id)
    assert ({*ends[1:-1]}, ends[0], ends[-1]) == ({outcome}, "unsure", "completed")
    assert (await entry(conn, queue_id))["attempts"] == len(ends)
    assert agent.executed() == [queue_id]


@pytest.mark.requirement("Q5")
async def test_an_agent_that_refuses_is_sent_to_once_in_an_interval_by_all_dispatchers_together(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    for answer in (409, 400, 500):
        agents(f"says-{answer}", answers=[answer] * 1000)
    await submit(conn, 60)

    for _ in range(2):
        spawn("dispatcher", **{**QUICK, "dispatch_every_s": 0.5})

    await until(lambda: _each_sent(conn, agents=3, count=4))
    gaps = [gap for (gap,) in await rows(conn, GAPS)]
    assert len(gaps) >= 9
    assert min(gaps) >= 0.5, gaps


@pytest.mark.requirement("Q5")
async def test_an_agent_that_has_ended_its_task_gets_the_next_at_once(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agents("a")
    queue_ids = await submit(conn, 3)

    spawn("dispatcher", **{**QUICK, "dispatch_every_s": 600})

    await until(lambda: ended(conn, *queue_ids))


@pytest.mark.requirement("Q8")
async def test_an_unknown_state_from_an_agent_counts_as_a_response(
    conn: Conn, spawn: Spawn, agents: Agents
) -> None:
    agent = agents("a", work_s=None, word="Thinking_Hard")
    spawn("dispatcher", **QUICK, dispatch_silent_s=600)
    [queue_id] = await submit(conn)
    await until(agent.executed)

    # Longer than an agent may be unreachable.
    await pass_silence(conn)
    before = len(agent.requests)
    await until(lambda: len(agent.requests) > before + 5)
    await until(lambda: _heard(conn))

    assert (await outcomes(conn, queue_id), agent.executed()) == ([None], [queue_id])
    agent.set(work_s=0)
    await until(lambda: ended(conn, queue_id))


@pytest.mark.requirement("Q15")
async def test_the_timeout_of_a_dispatcher_has_a_variable_of_its_own(
    conn: Conn, spawn: Spawn, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AG_QUEUE_DISPATCH_TIMEOUT", "1s200ms")
    agents("a", answers=["hang"])
    quick = {name: value for name, value in QUICK.items() if "timeout" not in name}
    child = spawn("dispatcher", **quick)

    [queue_id] = await submit(conn)

    await child.logged("queue.agent_silent", within=30, error="no response within 1.2 s")
    await until(lambda: ended(conn, queue_id))


async def _each_sent(conn: Conn, *, agents: int, count: int) -> bool:
    """Whether so many agents have been sent to so often each."""
    query = "select count(*) from treadle.dispatches group by agent_id"
    found = [each for (each,) in await rows(conn, query)]
    return len(found) == agents and min(found) >= count


async def _heard(conn: Conn) -> bool:
    """Whether an agent has responded in the last minutes."""
    query = "select heard_at > treadle.clock() - interval '10 minutes' from treadle.dispatches"
    return await rows(conn, query) == [(True,)]
