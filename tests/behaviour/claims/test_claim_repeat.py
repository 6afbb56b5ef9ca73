"""A claim with a lost response is repeated with its token; every claim has a new token."""

from uuid import uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged

pytestmark = pytest.mark.requirement("F8")


def test_a_claim_repeated_with_its_token_returns_the_same_tasks(driver: Driver) -> None:
    driver.enqueue_batch([{"n": n} for n in range(5)])
    token = uuid4()
    first = driver.claim("a", 3, token=token)

    with unchanged(driver):
        again = driver.claim("a", 3, token=token)

    assert len(first) == 3
    assert again == first
    assert {claim.token for claim in first} == {token}


def test_a_repeated_claim_leaves_out_what_was_finished_in_between(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 3)
    token = uuid4()
    done, open_one = driver.claim("a", 2, token=token)
    driver.complete(done)

    assert [claim.id for claim in driver.claim("a", 2, token=token)] == [open_one.id]


def test_a_claim_that_found_nothing_may_be_repeated_and_then_find_something(
    driver: Driver,
) -> None:
    token = uuid4()
    assert driver.claim("a", token=token) == []
    driver.enqueue()

    assert len(driver.claim("a", token=token)) == 1


def test_another_agent_cannot_ask_for_a_claim_with_its_token(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 2)
    token = uuid4()
    [mine] = driver.claim("a", token=token)

    [theirs] = driver.claim("b", token=token)

    assert theirs.id != mine.id


def test_a_repeat_for_another_queue_does_not_return_the_tasks(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    mine, other = driver.enqueue(), driver.enqueue(queue="mail")
    token = uuid4()
    assert driver.claim_one("a", token=token).id == mine

    assert driver.claim_one("a", queues=["mail"], token=token).id == other
    assert driver.claim_one("a", token=token).id == mine
    both = driver.claim("a", queues=["mail", "default"], token=token)
    assert {claim.id for claim in both} == {mine, other}


def test_a_queue_that_was_paused_meanwhile_repeats_its_answer(driver: Driver) -> None:
    driver.enqueue()
    token = uuid4()
    first = driver.claim("a", token=token)
    driver.rows("select treadle.pause_queue('default')")

    assert driver.claim("a", token=token) == first


def test_a_claim_without_a_token_gets_a_fresh_one_each_time(driver: Driver) -> None:
    driver.enqueue(max_attempts=50, retry={"strategy": "immediate", "poison": False})
    tokens = set()
    for _ in range(20):
        claim = driver.claim_one("a")
        tokens.add(claim.token)
        driver.fail(claim)

    assert len(tokens) == 20


@pytest.mark.parametrize("end", ["reaped", "released", "failed"])
def test_a_task_never_gets_the_token_of_its_last_claim_again(driver: Driver, end: str) -> None:
    task_id = driver.enqueue(retry={"strategy": "immediate"})
    token = uuid4()
    claim = driver.claim_one("a", token=token)
    if end == "reaped":
        driver.expire(claim)
    elif end == "released":
        driver.release(claim)
    else:
        driver.fail(claim)

    assert driver.claim("a", token=token) == []

    second = driver.claim_one("a")
    assert (second.id, driver.fail(second)) == (task_id, "ready")


def test_a_claim_returns_everything_that_the_handler_needs(driver: Driver) -> None:
    project = uuid4()
    task_id = driver.enqueue(
        {"prompt": "hello"},
        key="k",
        title="say hello",
        tags=["x"],
        priority=7,
        timeout_s=30,
        max_attempts=4,
        project_id=str(project),
        deadline_at="2040-01-01T00:00:00Z",
    )

    claim = driver.claim_one("a")

    row = driver.task(task_id)
    assert (claim.id, claim.spec, claim.attempt) == (task_id, {"prompt": "hello"}, 1)
    assert (claim.title, claim.tags, claim.priority) == ("say hello", ["x"], 7)
    assert (claim.timeout_s, claim.max_attempts, claim.project_id) == (30, 4, project)
    assert (claim.idempotency_key, claim.previous) == ("k", None)
    assert (claim.deadline_at, claim.lease_until) == (row["deadline_at"], row["lease_until"])


@pytest.mark.parametrize(("start", "status"), [(True, "running"), (False, "claimed")])
def test_a_claim_starts_the_task_at_once_or_leaves_that_to_the_agent(
    driver: Driver, start: bool, status: str
) -> None:
    driver.enqueue()
    claim = driver.claim_one("a", start=start)

    task = driver.task(claim.id)

    assert task["status"] == status
    assert (task["started_at"] is not None) == start
    assert (task["agent_id"], task["claim_token"]) == ("a", claim.token)
    assert driver.start(claim) == "ok"
    assert driver.state_of(claim.id) == "running"
