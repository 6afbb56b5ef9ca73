"""A person resolves a dead letter: retry, cancel, or modify and retry; the decision is kept."""

from typing import Any

import pytest

from tests.drivers.engine import Driver, Record
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F16")


def dead(driver: Driver, spec: dict[str, Any] | None = None, **options: Any) -> Claim:
    """The last claim of a task that gave up."""
    driver.enqueue(spec or {}, **{"max_attempts": 1, **options})
    claim = driver.claim_one("a")
    assert driver.fail(claim, "no luck", action="fail") == "dead_lettered"
    return claim


RESTARTS = {
    "retry_task": "select treadle.retry_task(%s)",
    "modify_and_retry": """
        select treadle.retry_task(%s, 'modify_and_retry', '{"spec": {"x": 1}}')
    """,
    "resolve_dead_letters": "select * from treadle.resolve_dead_letters(array[%s])",
    "retry_tasks_where": """
        select * from treadle.retry_tasks_where(
          jsonb_build_object('dag_id', (select dag_id from treadle.tasks where id = %s))
        )
    """,
    "retry_dag": "select treadle.retry_dag((select dag_id from treadle.tasks where id = %s))",
}


@pytest.mark.parametrize("way", RESTARTS)
def test_every_retry_gives_the_attempts_that_the_task_was_given(driver: Driver, way: str) -> None:
    """Not those of its type or queue, and not one more at the second retry."""
    driver.rows("""select treadle.define_type('code', '{"max_attempts": 9}')""")
    task = driver.value(
        """
        select ids[1] from treadle.create_dag('{"name": "d", "tasks": [
          {"name": "a", "type": "code", "max_attempts": 2, "retry": {"strategy": "immediate"}}
        ]}')
        """
    )

    for _ in range(3):
        verdicts = [driver.fail(driver.claim_one("a")) for _ in range(2)]
        assert verdicts == ["ready", "dead_lettered"]
        driver.rows(RESTARTS[way], task)

    assert driver.claim_one("a").attempt == 7


def test_a_cancelled_task_comes_back_with_its_own_attempts(driver: Driver) -> None:
    task = driver.enqueue(max_attempts=1)
    driver.claim_one("a")
    driver.cancel(task)

    driver.retry(task)

    assert driver.fail(driver.claim_one("a")) == "dead_lettered"


def test_attempts_given_with_a_retry_are_those_of_later_retries_too(driver: Driver) -> None:
    claim = dead(driver, retry={"strategy": "immediate"})
    driver.retry(claim.id, "modify_and_retry", {"max_attempts": 2})

    for _ in range(2):
        verdicts = [driver.fail(driver.claim_one("a")) for _ in range(2)]
        assert verdicts == ["ready", "dead_lettered"]
        driver.retry(claim.id)


def test_delays_start_again_with_the_new_round(driver: Driver) -> None:
    policy = {"strategy": "exponential", "initial_delay_s": 10, "multiplier": 2, "jitter": False}
    claim = dead(driver, max_attempts=2, retry=policy)
    driver.retry(claim.id)

    driver.fail(driver.claim_one("a"))

    delay = "select extract(epoch from retry_at - delayed_at) from treadle.tasks"
    assert driver.value(delay) == 10


def test_the_failures_of_the_old_round_do_not_make_a_poison_pill_of_the_new_one(
    driver: Driver,
) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    first = [driver.fail(driver.claim_one(agent)) for agent in ("a", "b", "a")]
    [[task_id]] = driver.rows("select task_id from treadle.dead_letters where poison_pill")
    driver.retry(task_id)

    second = [driver.fail(driver.claim_one(agent)) for agent in ("a", "b", "a")]

    assert first == second == ["ready", "ready", "dead_lettered"]


def test_attempts_are_counted_further_and_their_history_is_passed_on(driver: Driver) -> None:
    claim = dead(driver)
    driver.retry(claim.id)

    again = driver.claim_one("b")

    assert again.attempt == 2
    assert [each["error"] for each in again.previous or []] == ["no luck"]


def test_a_retried_task_can_be_completed(driver: Driver) -> None:
    claim = dead(driver)
    driver.retry(claim.id)
    driver.complete(driver.claim_one("b"), {"n": 1})

    task = driver.task(claim.id)
    assert (task["status"], task["output"], task["outcome"]) == ("completed", {"n": 1}, "completed")


def test_cancel_ends_the_task_for_good(driver: Driver) -> None:
    claim = dead(driver)

    assert driver.retry(claim.id, "cancel") == "cancelled"

    assert driver.state_of(claim.id) == "cancelled"
    assert driver.claim("a") == []


@pytest.mark.parametrize(
    ("resolution", "changes"),
    [("retry", {}), ("cancel", {}), ("modify_and_retry", {"priority": 1})],
)
def test_every_decision_is_stored_with_its_author(
    driver: Driver, resolution: str, changes: dict[str, Any]
) -> None:
    claim = dead(driver)

    driver.retry(claim.id, resolution, changes)

    [letter] = driver.records("select * from treadle.dead_letters")
    assert (letter["resolution"], letter["reviewer"]) == (resolution, "tester")
    assert (letter["note"], letter["changes"]) == ("a note", changes or None)
    assert driver.rows("select reviewed from treadle.dead_letter_details") == [(True,)]
    event = driver.events(claim.id)[-1]
    kind = "task.cancelled" if resolution == "cancel" else "task.retried"
    assert (event["kind"], event["actor"], event["data"]["changes"]) == (kind, "tester", changes)
    assert event["data"]["was"] == "dead_lettered"


def test_a_task_that_gives_up_again_is_a_second_dead_letter(driver: Driver) -> None:
    claim = dead(driver)
    driver.retry(claim.id)
    driver.fail(driver.claim_one("a"), action="fail")

    rows = driver.rows("select resolution from treadle.dead_letters order by dead_lettered_at")

    assert rows == [("retry",), (None,)]


def test_a_decision_repeated_after_it_took_effect_is_refused(driver: Driver) -> None:
    claim = dead(driver)
    driver.retry(claim.id)

    with unchanged(driver), refused("TR102", "is ready and cannot become ready"):
        driver.retry(claim.id)


def test_modify_and_retry_merges_the_spec_and_changes_the_rest(driver: Driver) -> None:
    claim = dead(driver, {"url": "x", "depth": 3})

    driver.retry(
        claim.id,
        "modify_and_retry",
        {"spec": {"url": "y"}, "priority": 5, "timeout_s": 60, "max_attempts": 7},
    )

    again = driver.claim_one("a")
    assert again.spec == {"url": "y", "depth": 3}
    assert (again.priority, again.timeout_s) == (5, 60)
    # Seven more, after the one that failed.
    assert again.max_attempts == 8


def test_modify_and_retry_moves_the_task_to_another_lane(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other', '{}')")
    driver.agent("coder", capabilities=["git"])
    claim = dead(driver)

    driver.retry(
        claim.id,
        "modify_and_retry",
        {"queue": "other", "type": "test", "capabilities": ["git"], "assigned_agent": "coder"},
    )

    assert driver.claim("a", queues=["default", "other"]) == []
    again = driver.claim_one("coder", queues=["other"], types=["test"])
    assert (again.id, again.queue, again.type) == (claim.id, "other", "test")


def test_fields_that_are_not_modified_keep_their_values(driver: Driver) -> None:
    retry = {"strategy": "fixed", "retry_on": None}
    claim = dead(
        driver,
        retry=retry,
        priority=7,
        timeout_s=30,
        ageing_rate=0.5,
        capabilities=[],
        assigned_agent="a",
        title="x",
    )
    before = driver.task(claim.id)

    driver.retry(claim.id)

    after = driver.task(claim.id)
    for name in (
        *("spec", "queue", "type", "priority", "timeout_s", "ageing_rate", "assigned_agent"),
        *("retry", "title", "rank", "lane_id", "created_at", "idempotency_key"),
    ):
        assert after[name] == before[name], name


def test_a_task_whose_key_is_in_use_cannot_be_retried(driver: Driver) -> None:
    claim = dead(driver, key="k")
    driver.enqueue(key="k")

    with unchanged(driver), refused("TR102", "another task now has the key 'k'"):
        driver.retry(claim.id)


def test_a_task_whose_key_is_free_gets_it_back(driver: Driver) -> None:
    claim = dead(driver, key="k")
    driver.retry(claim.id)

    assert driver.enqueue(key="k") == claim.id


def test_retry_brings_a_cancelled_task_back(driver: Driver) -> None:
    task_id = driver.enqueue()
    driver.cancel(task_id, reason="a mistake")

    driver.retry(task_id)

    assert driver.claim_one("a").id == task_id


def test_retry_makes_a_waiting_retry_ready_now(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    assert driver.fail(claim) == "retrying"

    assert driver.retry(claim.id) == "ready"

    assert driver.claim_one("a").id == claim.id


@pytest.mark.parametrize("state", ["ready", "running", "created", "pending"])
def test_a_task_that_has_not_given_up_cannot_be_resolved(driver: Driver, state: str) -> None:
    options: dict[str, Record] = {"created": {"hold": True}, "pending": {"delay_s": 60}}
    task_id = driver.enqueue(**options.get(state, {}))
    if state == "running":
        driver.claim_one("a")

    with unchanged(driver), refused("TR102", f"is {state} and cannot become"):
        driver.retry(task_id)
