"""The agent of a claim token is known from the row, also after the claim has ended."""

from uuid import UUID, uuid4

from tests.drivers.engine import Driver
from treadle.models import Claim


def owner(driver: Driver, task_id: UUID, token: UUID) -> list[tuple[object, ...]]:
    return driver.rows(
        "select queue, project_id, agent_id from treadle.claim_owners(%s, %s)", [task_id], [token]
    )


def claimed(driver: Driver, agent: str = "a") -> Claim:
    return driver.claim_one(agent)


def test_a_live_claim_belongs_to_its_agent(driver: Driver) -> None:
    driver.enqueue()
    claim = claimed(driver)
    assert owner(driver, claim.id, claim.token) == [("default", None, "a")]


def test_a_claim_that_was_taken_over_is_still_the_first_agents(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"}, max_attempts=3)
    stale = claimed(driver)
    driver.expire(stale)
    fresh = claimed(driver, "b")

    assert owner(driver, stale.id, stale.token) == [("default", None, "a")]
    assert owner(driver, fresh.id, fresh.token) == [("default", None, "b")]


def test_a_completed_claim_is_its_agents(driver: Driver) -> None:
    driver.enqueue()
    claim = claimed(driver)
    driver.complete(claim)
    assert owner(driver, claim.id, claim.token) == [("default", None, "a")]


def test_an_unknown_token_has_no_agent(driver: Driver) -> None:
    driver.enqueue()
    claim = claimed(driver)
    assert owner(driver, claim.id, uuid4()) == [("default", None, None)]
    assert owner(driver, uuid4(), claim.token) == []


def test_the_project_of_a_claimed_task_is_returned(driver: Driver) -> None:
    project_id = driver.value("select id from treadle.define_project('p')")
    driver.enqueue(project="p")
    claim = claimed(driver)
    assert owner(driver, claim.id, claim.token) == [("default", project_id, "a")]
