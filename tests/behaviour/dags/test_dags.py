"""DAGs: created in one transaction, released task by task, completed with the last one."""

from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import create, node, shaped
from tests.drivers.engine import Driver, Record
from tests.drivers.refusals import refused, unchanged

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


@pytest.mark.requirement("F3")
def test_a_dag_is_created_completely_and_only_its_roots_are_ready(driver: Driver) -> None:
    graph = shaped(driver, DIAMOND)

    assert graph.states() == {"a": "ready", "b": "pending", "c": "pending", "d": "pending"}
    assert graph.status == "running"
    [overview] = driver.records("select * from treadle.dag_overview where id = %s", graph.id)
    assert (overview["roots"], overview["leaves"]) == ([graph["a"]], [graph["d"]])
    assert (overview["tasks"], overview["ready"], overview["pending"]) == (4, 1, 3)


@pytest.mark.requirement("F4")
def test_completion_readies_tasks_that_wait_for_nothing_else(driver: Driver) -> None:
    graph = shaped(driver, DIAMOND)

    graph.complete("a")
    assert graph.ready() == {"b", "c"}
    graph.complete("b")
    assert graph.states()["d"] == "pending"
    graph.complete("c")
    assert graph.ready() == {"d"}
    assert graph.status == "running"
    graph.complete("d")

    assert graph.status == "completed"
    assert graph.row["ended_at"] is not None
    assert graph.events()[-1] == "dag.completed"


@pytest.mark.requirement("F3")
def test_a_dag_that_is_wrong_anywhere_leaves_nothing_behind(driver: Driver) -> None:
    tasks = [node("a"), node("b", ["a"]), {"name": "c", "type": "no-such-type"}]

    with unchanged(driver), refused("TR203"):
        create(driver, tasks)


def test_a_repeat_with_the_key_returns_the_same_dag_and_tasks(driver: Driver) -> None:
    first = shaped(driver, DIAMOND, key="once")
    again = shaped(driver, DIAMOND, key="once")

    assert (again.id, again.ids) == (first.id, first.ids)
    assert driver.value("select count(*) from treadle.tasks") == 4


def test_the_key_of_a_dag_with_other_tasks_is_refused(driver: Driver) -> None:
    shaped(driver, DIAMOND, key="once")

    with unchanged(driver), refused("TR001", "has different tasks"):
        shaped(driver, {"a": [], "x": ["a"]}, key="once")


def test_tasks_without_a_name_are_named_after_their_type(driver: Driver) -> None:
    tasks = [{"type": "code"}, {"type": "test", "after": ["code", "code-2"]}, {"type": "code"}]

    [(dag,)] = driver.rows(
        "select dag_id from treadle.create_dag(%s)", Jsonb({"name": "x", "tasks": tasks})
    )

    rows = driver.rows("select name from treadle.tasks where dag_id = %s order by name", dag)
    assert [row[0] for row in rows] == ["code", "code-2", "test"]


def test_defaults_apply_to_tasks_without_their_own_options(driver: Driver) -> None:
    tasks: list[Record] = [{"name": "a"}, {"name": "b", "type": "test", "priority": 3}]
    defaults = {"type": "code", "priority": 7}

    graph = create(driver, tasks, defaults=defaults)

    assert driver.task(graph["a"])["priority"] == 7
    assert driver.task(graph["b"])["priority"] == 3


def test_a_dependency_on_a_finished_task_is_satisfied(driver: Driver) -> None:
    driver.agent("a")
    earlier = driver.enqueue()
    driver.complete(driver.claim_one("a"))

    graph = create(driver, [node("a", [str(earlier)])])

    assert graph.ready() == {"a"}


def test_a_dependency_on_a_task_outside_is_counted_once_it_is_done(driver: Driver) -> None:
    driver.agent("a")
    earlier = driver.enqueue()
    claim = driver.claim_one("a")
    graph = create(driver, [node("a", [str(earlier), str(earlier)])])

    assert graph.states() == {"a": "pending"}
    driver.complete(claim)
    assert graph.ready() == {"a"}


def test_a_dependency_on_a_cancelled_task_is_refused_unless_it_is_optional(driver: Driver) -> None:
    gone = driver.enqueue()
    driver.cancel(gone)

    with unchanged(driver), refused("TR102", "it is cancelled"):
        create(driver, [node("a", [str(gone)])])

    graph = create(driver, [node("a", [{"task": str(gone), "optional": True}])])
    assert graph.ready() == {"a"}


def test_a_task_with_a_later_time_waits_for_both_its_time_and_its_dependencies(
    driver: Driver,
) -> None:
    graph = create(driver, [node("a"), node("b", ["a"], delay_s=3600)])

    graph.complete("a")
    assert graph.states()["b"] == "pending"
    driver.fall_due(graph["b"])
    assert graph.ready() == {"b"}


def test_a_task_whose_time_has_come_still_waits_for_its_dependencies(driver: Driver) -> None:
    graph = create(driver, [node("a"), node("b", ["a"], delay_s=3600)])
    driver.rows("update treadle.tasks set run_at = now() - interval '1 h' where name = 'b'")

    assert driver.promote() == []
    graph.complete("a")
    assert graph.ready() == {"b"}


def test_progress_is_an_event_each_tenth_of_the_way(driver: Driver) -> None:
    graph = create(driver, [node(f"t{n}") for n in range(20)])

    for n in range(20):
        graph.complete(f"t{n}")

    assert graph.events() == ["dag.started", *["dag.progressed"] * 9, "dag.completed"]


@pytest.mark.parametrize(
    ("tasks", "sqlstate", "words"),
    [
        ([], "TR001", "at least one"),
        (["a"], "TR001", "array of at least one object"),
        ([node("a"), node("a")], "TR001", "twice"),
        ([node("a", ["nowhere"])], "TR001", "no task 'nowhere'"),
        ([node("a", [str(uuid4())])], "TR001", "no task"),
        ([node("a:b")], "TR001", "without a colon"),
        ([node(str(uuid4()))], "TR001", "not a uuid"),
        ([node("a", hold=True)], "TR001", "unknown option 'hold'"),
        ([node("a", prioritee=1)], "TR001", "unknown option"),
        ([node("a", priority=500)], "TR001", "priority"),
        ([{**node("a"), "after": "b"}], "TR001", "after must be an array"),
        ([node("a", inputs={"x": "output of b"})], "TR001", "input x refers to"),
        ([node("a", inputs={"x": 5})], "TR001", "input x refers to"),
        ([node("a", inputs={"x": "task:nowhere:output"})], "TR001", "no task 'nowhere'"),
        ([node("a", queue="nowhere")], "TR202", "nowhere"),
    ],
)
def test_bad_tasks_are_refused_and_change_nothing(
    driver: Driver, tasks: list[Record], sqlstate: str, words: str
) -> None:
    with unchanged(driver), refused(sqlstate, words):
        create(driver, tasks)


def test_the_error_of_an_unknown_option_lists_the_options_of_dag_tasks(driver: Driver) -> None:
    with pytest.raises(psycopg.Error, match="unknown option 'depends_on'") as raised:
        create(driver, [node("a"), node("b", depends_on=["a"])])

    assert "after, " in (raised.value.diag.message_hint or "")


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": None},
        {"on_dead_letter": "explode"},
        {"budget_usd": -1},
        {"budget_usd": "NaN"},
        {"colour": "red"},
        {"key": "x" * 300},
        {"tasks": None},
        {"hold": "yes"},
    ],
)
def test_bad_settings_of_a_dag_are_refused(driver: Driver, options: Record) -> None:
    dag = {"name": "dag", "tasks": [node("a")], **options}

    with unchanged(driver), refused("TR001"):
        driver.rows("select treadle.create_dag(%s)", Jsonb(dag))
