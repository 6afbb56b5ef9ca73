"""`why` explains why no agent can claim a task."""

import pytest

from tests.drivers.budgets import set_budget
from tests.drivers.engine import Driver
from tests.drivers.why import only, reasons, silence, why

pytestmark = pytest.mark.requirement("B3")


def test_no_live_agent_serves_the_queue(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other')")
    task = driver.enqueue(queue="other")

    row = only(driver, task)

    assert (row["reason"], row["sentence"]) == ("no_agent", "no live agent serves queue other")
    assert row["detail"] == {"queue": "other", "type": "code"}


@pytest.mark.parametrize("how", ["silent", "draining", "offline"])
def test_an_agent_that_does_not_claim_is_none(driver: Driver, how: str) -> None:
    task = driver.enqueue()
    for name in ("a", "b"):
        if how == "silent":
            silence(driver, name)
        else:
            driver.rows("select treadle.set_agent_status(%s, %s)", name, how)

    assert reasons(driver, task) == ["no_agent"]


def test_no_live_agent_handles_the_type(driver: Driver) -> None:
    for name in ("a", "b"):
        driver.agent(name, task_types=["test"])
    task = driver.enqueue()

    row = only(driver, task)

    assert row["reason"] == "no_handler"
    assert row["sentence"] == "no live agent of the queue handles type code"


def test_the_capability_that_no_agent_has_is_named(driver: Driver) -> None:
    driver.agent("a", capabilities=["git"])
    task = driver.enqueue(capabilities=["git", "gpu"])

    row = only(driver, task)

    assert row["reason"] == "no_capability"
    assert row["sentence"] == "no live agent of the queue has capability gpu"
    assert (row["detail"]["capabilities"], row["detail"]["missing"]) == (["git", "gpu"], ["gpu"])


def test_capabilities_that_no_single_agent_has_are_named_together(driver: Driver) -> None:
    driver.agent("a", capabilities=["git"])
    driver.agent("b", capabilities=["gpu"])
    task = driver.enqueue(capabilities=["git", "gpu"])

    row = only(driver, task)

    assert row["sentence"] == "no live agent of the queue has all of git, gpu"
    assert row["detail"]["missing"] == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("unknown", "is not registered"),
        ("offline", "is offline"),
        ("draining", "is draining"),
        ("silent", "is offline: no heartbeat since 60 min"),
        ("elsewhere", "does not serve queue default"),
        ("other", "does not handle type code"),
        ("unable", "lacks gpu"),
    ],
)
def test_why_explains_the_state_of_the_assigned_agent(
    driver: Driver, state: str, said: str
) -> None:
    task = driver.enqueue(assigned_agent="c", capabilities=["gpu"])
    more = {"queues": ["x"]} if state == "elsewhere" else {}
    more |= {"task_types": ["test"]} if state == "other" else {}
    if state != "unknown":
        able: list[str] = [] if state == "unable" else ["gpu"]
        driver.agent("c", capabilities=able, **more)
    if state == "silent":
        silence(driver, "c")
    elif state in ("offline", "draining"):
        driver.rows("select treadle.set_agent_status('c', %s)", state)

    row = only(driver, task)

    assert (row["reason"], row["sentence"]) == ("assigned", f"assigned to agent c, which {said}")
    assert row["detail"]["agent"] == "c"


def test_every_agent_is_at_its_limit(driver: Driver) -> None:
    driver.agent("a", max_concurrent_tasks=2)
    driver.agent("b", max_concurrent_tasks=0)
    driver.enqueue_batch([{}] * 2)
    driver.claim("a", 2)
    task = driver.enqueue()

    assert reasons(driver, task) == ["agents_full", "position"]
    full, turn = why(driver, task)

    assert full["sentence"] == (
        "every agent that could take it is at its limit (a 2 of 2, b 0 of 0)"
    )
    assert full["detail"]["agents"][0] == {"id": "a", "held": 2, "max": 2}
    assert turn["sentence"] == "position 1 of 1 in queue default"


def test_the_agent_it_is_assigned_to_is_at_its_limit(driver: Driver) -> None:
    driver.agent("a", max_concurrent_tasks=1)
    driver.enqueue()
    driver.claim_one("a")
    task = driver.enqueue(assigned_agent="a")

    assert driver.value("select sentence from treadle.why(%s) limit 1", task) == (
        "assigned to agent a, which is at its limit (a 1 of 1)"
    )


def test_no_agent_can_afford_it(driver: Driver) -> None:
    driver.rows("select treadle.set_agent_status('b', 'offline')")
    set_budget(driver, "agent", "a", "0.10")
    task = driver.enqueue(max_cost_usd=0.5)

    row = only(driver, task)

    assert row["reason"] == "agent_budget"
    assert row["sentence"] == (
        "no agent that could take it has enough budget: it may cost $0.50, a can spend $0.10"
    )
    assert driver.claim("a") == []
    driver.agent("c")
    assert reasons(driver, task) == ["claimable"]
