"""`why` reports the position of a ready task, and `claim_order` the order of a queue."""

from collections.abc import Sequence

import pytest

from tests.drivers.budgets import set_budget
from tests.drivers.engine import Driver
from tests.drivers.gates import define_gate
from tests.drivers.keys import limit
from tests.drivers.refusals import refused
from tests.drivers.roles import become
from tests.drivers.why import only, order, reason, reasons

pytestmark = pytest.mark.requirement("B3")


def projects(driver: Driver, *names: str) -> None:
    """A fair queue, and projects to share it."""
    driver.rows("select treadle.define_queue('default', '{\"fair\": true}')")
    for name in names:
        driver.rows("insert into treadle.projects (name) values (%s)", name)


def test_the_first_task_is_claimable_now(driver: Driver) -> None:
    task = driver.enqueue(priority=10)
    driver.enqueue(priority=20)

    row = only(driver, task)

    assert row["reason"] == "claimable"
    assert row["sentence"] == "claimable now: the next claim of agent a takes it"
    assert row["detail"] == {
        "agent": "a", "position": 1, "of": 2, "queues": ["default"], "fair": False,
    }  # fmt: skip
    assert driver.claim_one("a").id == task


def test_why_reports_the_position_of_other_tasks(driver: Driver) -> None:
    ids = [driver.enqueue(priority=n, type=("code", "test")[n % 2]) for n in range(40)]

    row = only(driver, ids[16])

    assert row["reason"] == "position"
    assert row["sentence"] == "position 17 of 40 in queue default"
    assert (row["detail"]["position"], row["detail"]["of"]) == (17, 40)


def test_a_position_is_counted_over_all_queues_of_the_agent(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    for name in ("a", "b"):
        driver.agent(name, queues=["default", "mail"])
    driver.enqueue(queue="mail", priority=1)
    task = driver.enqueue(priority=2)

    assert only(driver, task)["sentence"] == "position 2 of 2 in queues default, mail"


def test_the_agent_that_gets_to_it_first_counts(driver: Driver) -> None:
    driver.agent("b", task_types=["test"])
    driver.enqueue(priority=1)
    task = driver.enqueue(priority=2, type="test")

    row = only(driver, task)

    assert (row["reason"], row["detail"]["agent"]) == ("claimable", "b")
    assert driver.claim_one("b", types=["test"]).id == task


def test_an_agent_at_its_limit_does_not_make_a_task_claimable(driver: Driver) -> None:
    driver.agent("a", max_concurrent_tasks=0)
    driver.agent("b", task_types=["code"])
    driver.enqueue(priority=1)
    task = driver.enqueue(priority=2)

    assert only(driver, task)["sentence"] == "position 2 of 2 in queue default"


@pytest.mark.parametrize(("before", "said"), [(9_999, "10000 of 10000"), (10_000, "over 10000 of")])
def test_a_long_line_is_counted_up_to_ten_thousand(driver: Driver, before: int, said: str) -> None:
    driver.enqueue_batch([{}] * before, priority=1)
    task = driver.enqueue(priority=90)

    assert only(driver, task)["sentence"].startswith(f"position {said}")


def test_tasks_that_the_agent_cannot_afford_are_not_counted_in_the_position(driver: Driver) -> None:
    for name in ("a", "b"):
        set_budget(driver, "agent", name, 1)
    driver.enqueue(priority=1, max_cost_usd=2)
    task = driver.enqueue(priority=2, max_cost_usd=1)

    assert reasons(driver, task) == ["claimable"]
    assert driver.claim_one("a").id == task


def test_a_task_that_its_budget_holds_back_does_not_block_others(driver: Driver) -> None:
    set_budget(driver, "type", "test", 1)
    poor = driver.enqueue(priority=1, type="test", max_cost_usd=2)
    task = driver.enqueue(priority=2)

    assert reasons(driver, task) == ["claimable"]
    assert driver.claim_one("a").id == task
    assert reasons(driver, poor) == ["budget"]


def test_a_task_too_large_for_its_gate_does_not_block_others(driver: Driver) -> None:
    define_gate(driver, "api", unit="tokens", limit=10, per_s=60)
    large = driver.enqueue_batch([{}] * 2, priority=1, gates=["api"], max_tokens=11)
    task = driver.enqueue(priority=2)

    assert reasons(driver, task) == ["claimable"]
    assert driver.claim_one("a").id == task
    assert reasons(driver, large[0].id) == ["gate_size"]


def test_tasks_that_will_be_admitted_first_are_not_counted_in_the_position(driver: Driver) -> None:
    limit(driver, "k", 1)
    driver.enqueue(concurrency_key="k", priority=0)
    waits = driver.enqueue(concurrency_key="k", priority=1)
    driver.complete(driver.claim_one("a"))
    task = driver.enqueue(priority=2)

    assert reasons(driver, waits) == ["admission"]
    assert only(driver, task)["sentence"] == "position 1 of 1 in queue default"
    assert driver.claim_one("a").id == waits


def test_in_a_fair_queue_a_position_is_that_among_its_project(driver: Driver) -> None:
    projects(driver, "big", "small")
    big = driver.enqueue_batch([{}] * 5, project="big")
    small = [driver.enqueue(project="small") for _ in range(2)]

    row = only(driver, small[1])

    assert row["sentence"] == (
        "projects take turns; position 2 of 2 in queue default among those of its project"
    )
    assert row["detail"]["fair"] is True
    assert reasons(driver, small[0]) == reasons(driver, big[0].id) == ["position"]


def test_a_single_project_in_a_fair_queue_does_not_wait(driver: Driver) -> None:
    projects(driver, "big")
    first = driver.enqueue(project="big")

    assert reasons(driver, first) == ["claimable"]


def test_the_order_of_a_queue_is_that_of_claims(driver: Driver) -> None:
    driver.rows("insert into treadle.projects (name) values ('p')")
    given: Sequence[tuple[int, str]] = [(30, "code"), (10, "test"), (20, "code")]
    ids = [driver.enqueue(priority=n, type=kind, title=f"t{n}") for n, kind in given]
    driver.enqueue(project="p", priority=40)

    rows = order(driver)

    assert [(row["place"], row["id"]) for row in rows[:3]] == [
        (1, ids[1]),
        (2, ids[2]),
        (3, ids[0]),
    ]
    assert (rows[0]["type"], rows[0]["priority"], rows[0]["title"]) == ("test", 10, "t10")
    assert float(rows[0]["effective_priority"]) == pytest.approx(10, abs=0.01)
    assert rows[0]["since"] == driver.task(ids[1])["created_at"]
    assert (rows[3]["project"], rows[3]["closed_reason"]) == ("p", None)
    assert [claim.id for claim in driver.claim("a", 3)] == [row["id"] for row in rows[:3]]


def test_open_lanes_come_first_and_closed_ones_show_the_cause(driver: Driver) -> None:
    shut = driver.enqueue(priority=1, type="test")
    lonely = driver.enqueue(priority=2, capabilities=["gpu"])
    free = driver.enqueue(priority=3)
    driver.rows("select treadle.pause_type('test', 'a bug')")

    rows = order(driver)

    assert [row["id"] for row in rows] == [free, shut, lonely]
    assert rows[1]["closed_reason"].startswith("type test has been paused")
    assert rows[2]["closed_reason"] == "no live agent of the queue has capability gpu"
    assert len(order(driver, limit=2)) == 2


def test_in_the_order_of_a_fair_queue_projects_take_turns(driver: Driver) -> None:
    projects(driver, "big", "small")
    big = [each.id for each in driver.enqueue_batch([{}] * 5, project="big")]
    small = [driver.enqueue(project="small") for _ in range(2)]

    assert [row["id"] for row in order(driver)] == [
        big[0], small[0], big[1], small[1], *big[2:],
    ]  # fmt: skip
    driver.rows(
        """
        update treadle.tasks
        set status = 'running', agent_id = 'a', claim_token = gen_random_uuid(),
          lease_until = now() + interval '1 h'
        where id = any(%s)
        """,
        big[:2],
    )
    assert [row["id"] for row in order(driver)][:2] == small, "big has two under way"


def test_the_order_of_an_unknown_queue_is_refused(driver: Driver) -> None:
    with refused("TR202", "there is no queue 'nowhere'"):
        order(driver, "nowhere")
    with refused("TR202", "there is no queue"):
        driver.rows("select * from treadle.read_queue('nowhere')")
    with refused("TR001", "limit must be 1 to 10000"):
        order(driver, limit=0)


@pytest.mark.parametrize("role", ["producer", "worker", "observer", "operator"])
def test_every_role_may_ask_about_a_task(driver: Driver, role: str) -> None:
    task = driver.enqueue()
    session = become(driver, f"treadle_{role}")

    assert reason(session, task, "claimable")


@pytest.mark.parametrize("role", ["observer", "operator"])
def test_a_caller_that_sees_all_tasks_sees_the_order_of_a_queue(driver: Driver, role: str) -> None:
    driver.enqueue()
    session = become(driver, f"treadle_{role}")

    assert order(session)
    assert session.records("select * from treadle.read_queue('default')")[0]["fair"] is False


@pytest.mark.parametrize("role", ["producer", "worker"])
def test_a_restricted_caller_does_not_see_the_order_of_a_queue(driver: Driver, role: str) -> None:
    session = become(driver, f"treadle_{role}")

    with refused("42501", "permission denied for function"):
        order(session)
    with refused("42501", "permission denied for function"):
        session.rows("select * from treadle.read_queue('default')")
