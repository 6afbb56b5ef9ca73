"""Cancel and retry all tasks that match a filter: counted first, then changed."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import shaped
from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("B7")

Counts = dict[tuple[str, str, str, str], int]


def bulk(driver: Driver, what: str, where: object, **more: Any) -> Counts:
    """Call cancel_tasks_where or retry_tasks_where; counts by queue, type, state and verdict."""
    given = "".join(f", p_{name} => %s" for name in more)
    rows = driver.records(
        f"select * from treadle.{what}_tasks_where(%s{given})", Jsonb(where), *more.values()
    )
    return {(r["queue"], r["type"], r["status"], r["verdict"]): r["tasks"] for r in rows}


def dead(driver: Driver, failure_class: str = "error", error: str = "boom", **options: Any) -> UUID:
    """A dead letter."""
    task_id = driver.enqueue(**{"priority": 0, **options})
    claim = driver.claim_one(queues=[options.get("queue", "default")])
    assert claim.id == task_id
    driver.fail(claim, error, failure_class=failure_class, action="fail")
    return task_id


def test_a_dry_run_counts_and_changes_nothing(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    driver.enqueue_batch([{}] * 3, queue="mail")
    driver.enqueue(queue="mail", hold=True)
    driver.enqueue()
    dead(driver)

    with unchanged(driver):
        found = bulk(driver, "cancel", {"queue": "mail"}, dry_run=True)
        letters = bulk(driver, "retry", {"type": "code"}, dry_run=True)

    assert found == {
        ("mail", "code", "ready", "found"): 3,
        ("mail", "code", "created", "found"): 1,
    }
    assert letters == {("default", "code", "dead_lettered", "found"): 1}


def test_cancelling_takes_what_the_filter_finds_and_what_depends_on_it(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": []})
    driver.rows("update treadle.tasks set tags = '{old}' where id = %s", graph["a"])
    driver.claim("a", 5)

    found = bulk(driver, "cancel", {"tag": "old"}, reason="not needed", actor="tester")

    assert found == {
        ("default", "code", "running", "cancelled"): 1,
        ("default", "code", "pending", "cascaded"): 1,
    }
    assert graph.states() == {"a": "cancelled", "b": "cancelled", "c": "running"}
    assert driver.task(graph["a"])["failure_reason"] == "not needed"
    assert [each["actor"] for each in driver.events(graph["a"])] == ["tester"]


def test_dead_letters_are_retried_by_class_and_reason(driver: Driver) -> None:
    wanted = dead(driver, "timeout", "took longer than 5 s")
    others = [dead(driver, "timeout", "too slow"), dead(driver, "error", "longer than")]

    found = bulk(
        driver, "retry", {"failure_class": "timeout", "reason": "longer than"}, note="fixed"
    )

    assert found == {("default", "code", "dead_lettered", "retried"): 1}
    assert driver.state_of(wanted) == "ready"
    assert {driver.state_of(each) for each in others} == {"dead_lettered"}
    query = "select resolution, note from treadle.dead_letters where task_id = %s"
    assert driver.rows(query, wanted) == [("retry", "fixed")]


def test_cancelled_and_retrying_tasks_are_retried_if_the_filter_selects_them(
    driver: Driver,
) -> None:
    gone = driver.enqueue()
    driver.cancel(gone)
    late = driver.enqueue()
    driver.fail(driver.claim_one(), retry_after=60)

    assert bulk(driver, "retry", {"queue": "default"}) == {}
    found = bulk(driver, "retry", {"status": ["cancelled", "retrying"]})

    assert {verdict for *_, verdict in found} == {"retried"}
    assert [driver.state_of(gone), driver.state_of(late)] == ["ready", "ready"]


def test_a_cancelled_chain_is_retried_completely_in_any_order(driver: Driver) -> None:
    edges = {f"t{n}": [f"t{n + 1}"] for n in range(20)} | {"t20": []}
    graph = shaped(driver, edges)
    driver.cancel(graph["t20"])

    found = bulk(driver, "retry", {"dag_id": str(graph.id), "status": "cancelled"})

    assert found == {("default", "code", "cancelled", "retried"): 21}
    assert graph.ready() == {"t20"}
    row = graph.row
    assert (row["status"], row["cancelled"]) == ("running", 0)


def test_tasks_that_cannot_be_retried_are_reported_and_the_rest_is_retried(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})
    driver.cancel(graph["a"])
    driver.rows("update treadle.tasks set tags = '{x}' where id = %s", graph["b"])
    taken = driver.enqueue(key="one", tags=["x"])
    driver.cancel(taken)
    driver.enqueue(key="one")
    fine = driver.enqueue(tags=["x"])
    driver.cancel(fine)

    rows = driver.records(
        "select verdict, why, tasks from treadle.retry_tasks_where(%s)",
        Jsonb({"status": "cancelled", "tag": "x"}),
    )

    assert sorted((row["verdict"], row["tasks"]) for row in rows) == [
        *(("refused", 1), ("refused", 1), ("retried", 1))
    ]
    first, second = sorted(row["why"] for row in rows if row["verdict"] == "refused")
    assert "another task now has the key" in first
    assert "depends on a task that was cancelled" in second
    states = [driver.state_of(each) for each in (fine, taken, graph["b"])]
    assert states == ["ready", "cancelled", "cancelled"]


def test_beyond_the_limit_tasks_are_left_and_the_oldest_go_first(driver: Driver) -> None:
    ids = [each.id for each in driver.enqueue_batch([{}] * 5)]

    found = bulk(driver, "cancel", {"queue": "default"}, limit=2)

    assert found == {
        ("default", "code", "ready", "cancelled"): 2,
        ("default", "code", "ready", "left"): 3,
    }
    assert [driver.state_of(each) for each in ids[:3]] == ["cancelled", "cancelled", "ready"]


def test_a_task_that_moved_on_before_it_was_locked_is_left_alone(driver: Driver) -> None:
    task_id = driver.enqueue()

    found = while_held(
        driver,
        lambda first: first.claim_one(),
        lambda second: bulk(second, "cancel", {"status": "ready"}),
    )

    assert found == {("default", "code", "ready", "moved"): 1}
    assert driver.state_of(task_id) == "running"


def test_each_filter_finds_what_it_names(driver: Driver) -> None:
    project = uuid4()
    graph = shaped(driver, {"a": []})
    old = driver.enqueue(created_by="ann", source="cron", tags=["t"], project_id=str(project))
    driver.rows(
        "update treadle.tasks set created_at = now() - interval '3 hours' where id = %s", old
    )
    driver.enqueue()
    driver.claim("b", 1)

    def count(**where: object) -> int:
        return sum(bulk(driver, "cancel", where, dry_run=True).values())

    assert count(type="code") == 3
    assert count(created_before="2h") == count(tag="t") == count(created_by="ann") == 1
    assert count(source="cron") == count(project_id=str(project)) == 1
    assert count(created_after="2h") == 2
    assert count(dag_id=str(graph.id)) == 1
    assert count(agent="b") == count(status="running") == 1
    assert count(status=["running", "ready"]) == 3
    assert count(created_before="2026-01-01", queue="default") == 0


BAD: list[object] = [
    {},
    [],
    None,
    {"colour": "red"},
    {"queue": 5},
    {"queue": ""},
    {"queue": None},
    {"status": "completed"},
    {"status": []},
    {"status": ["ready", None]},
    {"status": 3},
    {"dag_id": "x"},
    {"project_id": "1"},
    {"created_before": "soon"},
    {"created_after": "infinity"},
    {"created_after": "2 parsecs"},
]


@pytest.mark.parametrize("what", ["cancel", "retry"])
def test_a_filter_that_is_empty_unknown_or_malformed_is_refused(driver: Driver, what: str) -> None:
    driver.enqueue()
    for where in BAD:
        with unchanged(driver), refused("TR001"):
            bulk(driver, what, where)
    with unchanged(driver), refused("TR202"):
        bulk(driver, what, {"queue": "mial"})
    with unchanged(driver), refused("TR203"):
        bulk(driver, what, {"type": "cod"})
    for limit in (0, 100_001, None):
        with unchanged(driver), refused("TR001"):
            bulk(driver, what, {"queue": "default"}, limit=limit)


def test_an_age_counts_by_the_clock_of_the_database(driver: Driver) -> None:
    driver.enqueue()

    assert bulk(driver, "cancel", {"created_before": "1d"}, dry_run=True) == {}
    driver.set_clock(timedelta(days=2))

    assert sum(bulk(driver, "cancel", {"created_before": "1d"}, dry_run=True).values()) == 1
