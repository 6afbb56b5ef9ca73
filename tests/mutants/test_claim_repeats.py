"""The guards of repeated claims: each is broken once, and a test must notice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

repeats = Killers("claims.test_claim_repeat")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a repeat for any queue": Mutant(
        "claim_tasks",
        {" and tasks.queue = any (p_queues)": ""},
        repeats.test_a_repeat_for_another_queue_does_not_return_the_tasks,
    ),
    "a repeat of any agent": Mutant(
        "claim_tasks",
        {"tasks.agent_id = p_agent and tasks.claim_token": "tasks.claim_token"},
        repeats.test_another_agent_cannot_ask_for_a_claim_with_its_token,
    ),
    "a repeat of open queues only": Mutant(
        "claim_tasks",
        {
            "tasks.queue = any (p_queues)": "tasks.queue in ("
            "select queues.name from treadle.queues where queues.paused_at is null)"
        },
        repeats.test_a_queue_that_was_paused_meanwhile_repeats_its_answer,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
