"""A person can change the priority of everything that waits, with a reason that is kept."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import ask, suspend
from treadle import Treadle
from treadle.producer.handle import Handle

pytestmark = pytest.mark.requirement("F28")


def set_priority(driver: Driver, *ids: UUID, **given: Any) -> list[tuple[str, int | None]]:
    """The verdict and the priority of each."""
    named = "".join(f", p_{name} => %s" for name in given)
    query = f"select verdict, priority from treadle.set_priority(%s{named})"
    return [(row[0], row[1]) for row in driver.rows(query, list(ids), *given.values())]


def claimed(driver: Driver, count: int) -> list[UUID]:
    return [driver.claim_one().id for _ in range(count)]


def test_claims_follow_a_priority_that_was_raised_or_lowered(driver: Driver) -> None:
    first, second, third = (driver.enqueue() for _ in range(3))

    assert set_priority(driver, third, priority=10) == [("prioritised", 10)]
    assert set_priority(driver, first, tier="background") == [("prioritised", 90)]

    assert claimed(driver, 3) == [third, second, first]


def test_age_deadline_and_critical_path_still_count(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    soon = driver.value("select treadle.clock() + interval '30 minutes'").isoformat()
    [[waits, heads]] = driver.rows(
        """
        select ids[2], ids[1] from treadle.create_dag('{"name": "d", "tasks": [
          {"name": "a", "type": "code", "priority": 40},
          {"name": "b", "type": "code", "after": ["a"], "priority": 40}
        ]}')
        """
    )
    due = driver.enqueue(priority=40, deadline_at=soon)
    twins = {
        heads: driver.value(
            """
            select ids[1] from treadle.create_dag('{"name": "e", "tasks": [
              {"name": "a", "type": "code", "priority": 60},
              {"name": "b", "type": "code", "after": ["a"]}
            ]}')
            """
        ),
        due: driver.enqueue(priority=60, deadline_at=soon),
        waits: driver.enqueue(priority=60),
    }

    set_priority(driver, *twins, priority=60)

    for changed, made in twins.items():
        found, wanted = driver.task(changed), driver.task(made)
        names = ("priority", "rank", "lane_id", "rerank_at")
        assert [found[name] for name in names] == [wanted[name] for name in names]


WAITING: dict[str, dict[str, Any]] = {
    "created": {"hold": True},
    "pending": {"delay_s": 60},
    "ready": {},
    "retrying": {},
    "blocked": {},
}


@pytest.mark.parametrize("state", WAITING)
def test_everything_that_waits_can_be_prioritised(driver: Driver, state: str) -> None:
    task = driver.enqueue(**WAITING[state])
    if state == "retrying":
        driver.fail(driver.claim_one())
    elif state == "blocked":
        claim = driver.claim_one()
        suspend(driver, claim, ask(driver, claim))
    assert driver.state_of(task) == state

    assert set_priority(driver, task, urgency=10) == [("prioritised", 5)]

    assert (driver.state_of(task), driver.task(task)["priority"]) == (state, 5)


def test_what_does_not_wait_is_left_alone_with_a_verdict(driver: Driver) -> None:
    done, running, waiting = (driver.enqueue(priority=at) for at in (1, 2, 3))
    driver.complete(driver.claim_one())
    driver.claim_one()

    with unchanged(driver):
        verdicts = set_priority(driver, done, running, waiting, uuid4(), priority=3)

    assert verdicts == [("ended", 1), ("running", 2), ("already", 3), ("unknown", None)]


def test_an_event_says_who_changed_what_and_why(driver: Driver) -> None:
    task = driver.enqueue(priority=50)

    set_priority(driver, task, tier="high", reason="a customer waits", actor="ada")

    [event] = driver.events(task)
    assert (event["kind"], event["actor"]) == ("task.prioritised", "ada")
    assert event["data"] == {"was": 50, "priority": 20, "reason": "a customer waits"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give one of"),
        ({"priority": 5, "tier": "high"}, "give one of"),
        ({"priority": 101}, "priority must be 0 to 100"),
        ({"tier": "urgent"}, "no tier 'urgent'"),
        ({"urgency": 0}, "urgency must be 1 to 10"),
        ({"priority": 5, "actor": " "}, "actor must have"),
        ({"priority": 5, "reason": "x" * 10_001}, "10000 are allowed"),
    ],
)
def test_a_priority_that_there_is_not_is_refused(
    driver: Driver, given: dict[str, Any], words: str
) -> None:
    task = driver.enqueue()

    with unchanged(driver), refused("TR001", words):
        set_priority(driver, task, **given)


def test_a_task_that_is_claimed_in_the_meantime_keeps_its_rank(driver: Driver) -> None:
    task = driver.enqueue()

    late = while_held(
        driver, lambda one: one.claim_one(), lambda other: set_priority(other, task, priority=1)
    )

    assert late == [("running", 50)]
    assert driver.task(task)["priority"] == 50


def test_a_filter_prioritises_what_it_finds_and_a_dry_run_only_counts(driver: Driver) -> None:
    chosen = [driver.enqueue(tags=["x"], priority=priority) for priority in (50, 5)]
    driver.enqueue()
    query = """
        select verdict, tasks from treadle.set_priority_where(
          '{"tag": "x"}', p_tier => 'critical', p_actor => 'ada', p_dry_run => %s, p_limit => %s
        )
    """

    with unchanged(driver):
        assert driver.rows(query, True, 1) == [("found", 1), ("left", 1)]
    assert driver.rows(query, False, 10) == [("already", 1), ("prioritised", 1)]

    assert claimed(driver, 2) == chosen
    with refused("TR001", "status must be one or more of created, pending"):
        driver.rows("select * from treadle.set_priority_where(%s, 5)", Jsonb({"status": "running"}))


async def test_a_handle_changes_the_priority_of_its_task(driver: Driver, app: Treadle) -> None:
    handle = Handle(app, driver.enqueue())

    assert await handle.set_priority(7, reason="soon") is True
    assert driver.claim_one().priority == 7
    assert await handle.set_priority(tier="low") is False
