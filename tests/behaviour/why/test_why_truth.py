"""What `why` says is true: `claimable` means that the next claim takes the task, and it is never
claimed without that having been said.
"""

import re
from pathlib import Path
from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.situations import Situation
from tests.drivers.why import why

pytestmark = pytest.mark.requirement("B3")

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "find-out-why-a-task-waits.md"
STATES = (
    *("created", "pending", "ready", "claimed", "running", "validating", "blocked"),
    *("retrying", "completed", "dead_lettered", "cancelled"),
)
DOCUMENTED = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
# What is said instead where others may be let in first, or projects take turns.
UNSURE = {"position", "admission", "breaker_probe"}


def said(driver: Driver, tasks: list[UUID]) -> dict[UUID, dict[str, dict[str, object]]]:
    """The details of each reason, by task."""
    return {task: {row["reason"]: row["detail"] for row in why(driver, task)} for task in tasks}


@pytest.mark.parametrize("seed", range(40))
def test_why_returns_claimable_exactly_for_the_task_that_the_next_claim_takes(
    driver: Driver, seed: int
) -> None:
    situation = Situation(driver, seed)
    reasons = said(driver, situation.tasks)
    unsure = situation.unsure()

    for task, found in reasons.items():
        assert found, "there is always a reason"
        assert set(found) <= DOCUMENTED
        if "claimable" in found:
            agent = str(found["claimable"]["agent"])
            assert situation.claim(agent) == task, f"{agent} was to take it"
    for agent in situation.live():
        taken = situation.claim(agent)
        if taken is not None:
            found = reasons[taken]
            assert "claimable" in found or (unsure and UNSURE & set(found))


@pytest.mark.parametrize("state", STATES)
def test_why_has_an_answer_for_every_state_of_a_task(driver: Driver, state: str) -> None:
    task = driver.enqueue()
    claim = state in ("claimed", "running", "validating")
    driver.rows(
        """
        update treadle.tasks
        set
          status = given.state,
          agent_id = case when given.claim then 'gone' end,
          claim_token = case when given.claim then gen_random_uuid() end,
          lease_until = case when given.claim then now() end,
          retry_at = case when given.state = 'retrying' then now() end,
          completed_at = case
            when given.state in ('completed', 'dead_lettered', 'cancelled') then now()
          end
        from (select %s as state, %s as claim) as given
        where id = %s
        """,
        state,
        claim,
        task,
    )

    rows = why(driver, task)

    assert rows
    assert all(row["sentence"] and row["reason"] and row["detail"] for row in rows)
