"""Related rows are pruned together, and rows that another task needs are kept."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.drivers.artifacts import stored
from tests.drivers.dags import Graph, create, node
from tests.drivers.engine import Driver
from tests.drivers.retention import DAY, age, archived, complete_one, exists, keep, prune
from tests.drivers.steps import claimed, fork, record_artifact, refer, save_step
from tests.drivers.waits import ask

EVERYTHING = {"keep_completed_s": 86400, "keep_cancelled_s": 86400, "keep_dead_s": 86400}


def spawned(driver: Driver, parent: UUID, **options: object) -> UUID:
    """A finished child of a task, made a while after it."""
    child = complete_one(driver, **options)
    driver.rows("update treadle.tasks set parent_id = %s where id = %s", parent, child)
    return child


def finished(driver: Driver) -> Graph:
    graph = create(driver, [node("a"), node("b", ["a"])])
    graph.complete("a", "b")
    assert graph.status == "completed"
    return graph


def test_a_dag_goes_as_a_whole_with_its_row_and_budget(driver: Driver) -> None:
    keep(driver)
    graph = finished(driver)
    driver.rows("select treadle.set_budget('dag', %s, 5)", str(graph.id))
    other = driver.rows("select treadle.set_budget('type', 'code', 5)")
    age(driver)

    # The walk finds one of them, the other goes with it.
    [(pruned,)] = driver.rows("select pruned from treadle.prune_tasks(p_limit => 1)")

    assert pruned == 2
    assert driver.rows("select id from treadle.dags") == []
    assert driver.rows("select id from treadle.budgets") == other
    [row] = driver.records("select * from treadle.archived_dags")
    assert (row["id"], row["status"], row["dag"]["completed"]) == (graph.id, "completed", 2)
    assert row["budgets"][0]["limit_usd"] == 5
    assert {event["kind"] for event in row["events"]} >= {"dag.completed"}
    history = archived(driver, graph["b"])
    assert history is not None
    assert history["depends_on"] == [graph["a"]]


def test_a_dag_stays_while_one_of_its_tasks_is_not_old_enough(driver: Driver) -> None:
    keep(driver)
    graph = finished(driver)
    later = "update treadle.tasks set completed_at = now() + interval '2 days' where id = %s"
    driver.rows(later, graph["b"])
    age(driver)

    assert prune(driver) == 0
    assert graph.row["completed"] == 2
    age(driver, 4 * DAY)
    assert prune(driver) == 2


@pytest.mark.parametrize("status", ["running", "failed"])
def test_a_dag_that_has_not_ended_keeps_its_tasks(driver: Driver, status: str) -> None:
    keep(driver, **EVERYTHING)
    graph = create(driver, [node("a"), node("b")])
    graph.complete("a")
    if status == "failed":
        graph.give_up("b")
    assert graph.status == status
    age(driver)

    assert prune(driver) == 0
    assert graph.row["completed"] == 1


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_task_stays_for_one_that_depends_on_it_and_may_still_run(
    driver: Driver, end: str
) -> None:
    keep(driver, keep_completed_s=0, keep_cancelled_s=86400)
    graph = create(driver, [node("a")])
    graph.complete("a", output=1)
    user = create(driver, [node("u", [str(graph["a"])])], name="user")

    assert prune(driver) == 0
    if end == "complete":
        user.complete("u")
        assert prune(driver) == 2
    else:
        driver.cancel(user["u"])
        # It could be retried: as long as it is there, so is what it needs.
        assert prune(driver) == 0
        age(driver)
        assert prune(driver) == 2
    assert driver.rows("select * from treadle.dependencies") == []


def test_a_child_stays_for_its_parent_and_a_parent_for_its_children(driver: Driver) -> None:
    keep(driver, **EVERYTHING)
    parent = claimed(driver)
    child = spawned(driver, parent.id)
    age(driver)

    assert prune(driver) == 0, "the parent runs"
    driver.complete(parent)
    assert prune(driver) == 1, "the parent has completed, and is not old"
    assert exists(driver, parent.id)
    age(driver, 4 * DAY)
    second = spawned(driver, parent.id)
    assert prune(driver) == 0, "the other child is not old"
    age(driver, 8 * DAY)
    assert prune(driver) == 2
    assert not exists(driver, child)
    assert not exists(driver, second)


def test_a_parent_that_could_be_retried_goes_with_its_children_from_anywhere(
    driver: Driver,
) -> None:
    keep(driver, **EVERYTHING)
    parent = driver.enqueue()
    driver.cancel(parent)
    children = [spawned(driver, parent) for _ in range(3)]
    age(driver)

    [(pruned,)] = driver.rows("select pruned from treadle.prune_tasks(p_limit => 1)")

    assert pruned == 4
    assert not any(exists(driver, task) for task in [parent, *children])


def by_fork(driver: Driver, done: UUID) -> UUID:
    """A fork takes the inputs of what it comes from, without an edge."""
    first = claimed(driver)
    refer(driver, first.id, {"brief": f"task:{done}:output"})
    save_step(driver, first)
    save_step(driver, first, "check")
    made = fork(driver, first.id, "check")
    driver.rows("delete from treadle.steps where task_id = %s", first.id)
    driver.rows("delete from treadle.tasks where id = %s", first.id)
    return made


def by_artifact(driver: Driver, done: UUID) -> UUID:
    [(file,)] = driver.rows("select id from treadle.artifacts where task_id = %s", done)
    task = driver.enqueue()
    refer(driver, task, {"file": f"artifact:{file}"})
    return task


def by_artifact_in_a_dag(driver: Driver, done: UUID) -> UUID:
    task = by_artifact(driver, done)
    driver.rows("update treadle.tasks set dag_id = %s, name = 'a' where id = %s", uuid4(), task)
    return task


@pytest.mark.parametrize("user", [by_fork, by_artifact, by_artifact_in_a_dag])
def test_a_task_stays_for_one_whose_inputs_name_it(
    driver: Driver, user: Callable[[Driver, UUID], UUID]
) -> None:
    keep(driver, keep_completed_s=0)
    claim = claimed(driver)
    record_artifact(driver, claim)
    needs = user(driver, claim.id)
    driver.complete(claim, "brief")

    assert prune(driver) == 0
    driver.cancel(needs)
    assert prune(driver) == 1


def test_a_task_with_an_open_question_or_reserved_money_stays(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    first, second = claimed(driver), claimed(driver, "b")
    wait = ask(driver, first)
    driver.complete(first)
    driver.complete(second)
    # Neither can come about by treadle's own functions.
    driver.rows("update treadle.waits set status = 'open', ended_at = null where id = %s", wait)
    driver.rows("insert into treadle.reservations values (%s, 1, 1)", second.id)

    assert prune(driver) == 0
    driver.rows("update treadle.waits set status = 'cancelled', ended_at = now()")
    driver.rows("delete from treadle.reservations")
    assert prune(driver) == 2


def test_a_fork_outlives_what_it_comes_from(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    claim = claimed(driver)
    save_step(driver, claim)
    save_step(driver, claim, "check", "fine")
    made = fork(driver, claim.id, "check")
    driver.complete(claim)

    assert prune(driver) == 1

    assert driver.task(made)["forked_from"] == claim.id
    assert [step["name"] for step in driver.records("select name from treadle.steps")] == ["draft"]


def test_a_task_with_files_stays_for_forks_that_may_still_run(driver: Driver) -> None:
    """Their steps may name the files."""
    keep(driver, keep_completed_s=0)
    claim = claimed(driver)
    save_step(driver, claim, "draft", {"file": str(stored(driver, claim))})
    save_step(driver, claim, "check")
    made = fork(driver, claim.id, "check")
    driver.complete(claim)

    assert prune(driver) == 0
    driver.complete(driver.claim_one())
    assert prune(driver) == 2
    assert not exists(driver, made)


def test_a_task_with_files_stays_for_forks_of_its_forks(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    claim = claimed(driver)
    save_step(driver, claim, "draft", {"file": str(stored(driver, claim))})
    save_step(driver, claim, "check")
    fork(driver, claim.id, "check")
    driver.complete(claim)
    second = driver.claim_one()
    save_step(driver, second, "look")
    made = fork(driver, second.id, "look")
    driver.complete(second)

    assert prune(driver) == 0
    driver.cancel(made)
    assert prune(driver) == 2
