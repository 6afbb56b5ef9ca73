"""A task of a DAG can have an idempotency key: a repeat is the task that exists (R1).

That task stays where it is, and what comes after it in the new DAG depends on it.
"""

from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import finish
from tests.drivers.dags import Graph, add, create, depend, node, opened, spawn, start, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle
from treadle.worker.context import Context

pytestmark = [pytest.mark.requirement("F28"), pytest.mark.requirement("R1")]


def keyed(name: str, *after: Any, key: str = "k", **options: Any) -> Record:
    return node(name, after, idempotency_key=key, **options)


def reading(name: str, needed: str) -> Record:
    return node(name, inputs={"given": f"task:{needed}:output"})


def plan(driver: Driver, *tasks: Record, **options: Any) -> tuple[bool, list[UUID], list[UUID]]:
    [row] = driver.rows(
        "select created, ids, reused from treadle.create_dag(%s)",
        Jsonb({"name": "d", "tasks": tasks, **options}),
    )
    return row


def lint_and_report(driver: Driver) -> Graph:
    return create(driver, [node("setup"), keyed("lint", "setup"), reading("report", "lint")])


def test_a_repeat_outside_of_the_dag_is_the_task_of_the_dag(driver: Driver) -> None:
    graph = lint_and_report(driver)

    assert driver.enqueue(key="k") == graph["lint"]
    assert driver.task(graph["lint"])["idempotency_key"] == "k"
    graph.complete("setup", "lint", "report")
    assert driver.enqueue(key="k") == graph["lint"]


def test_a_second_dag_depends_on_the_task_that_exists(driver: Driver) -> None:
    first = lint_and_report(driver)

    second = lint_and_report(driver)

    assert second["lint"] == first["lint"]
    assert (second.row["tasks"], first.row["tasks"]) == (2, 3)
    assert second.states() == {"setup": "ready", "report": "pending"}
    # What the second says of the task changes nothing: it does not wait for this.
    second.complete("setup")
    first.complete("setup")
    assert driver.complete(first.claim("lint"), {"n": 1}) == "completed"
    assert second.claim("report").spec == {"given": {"n": 1}}
    [data] = driver.rows(
        "select data -> 'tasks' from treadle.events where dag_id = %s and kind = 'dag.started'",
        second.id,
    )
    assert data == (2,)
    assert faults(driver) == []


def test_a_task_outside_and_its_id_are_one_dependency(driver: Driver) -> None:
    alone = driver.enqueue(key="k")
    tasks = [keyed("a"), node("b", ["a", str(alone)]), node("c", [{"task": "a", "optional": True}])]

    created, ids, reused = plan(driver, *tasks)

    assert created
    assert ids[0] == alone
    assert reused == [alone]
    query = "select depends_on, optional from treadle.dependencies order by optional"
    assert driver.rows(query) == [(alone, False), (alone, True)]
    driver.claim_one()
    driver.cancel(alone, reason="not needed")
    assert [driver.state_of(each) for each in ids[1:]] == ["cancelled", "ready"]
    assert faults(driver) == []


@pytest.mark.parametrize("end", ["dead_lettered", "cancelled"])
def test_the_key_is_free_after_a_dead_letter_or_a_cancellation(driver: Driver, end: str) -> None:
    first = driver.enqueue(key="k")
    if end == "cancelled":
        driver.cancel(first)
    else:
        driver.fail(driver.claim_one(), action="fail")
    assert driver.state_of(first) == end

    graph = create(driver, [keyed("a"), node("b", ["a"])])

    assert graph["a"] != first
    assert graph.states() == {"a": "ready", "b": "pending"}


def test_a_key_belongs_to_a_project(driver: Driver) -> None:
    for name in ("p", "q"):
        driver.rows("select treadle.define_project(%s)", name)
    mine = driver.enqueue(key="k", project="p")
    other = driver.enqueue(key="k", project="q")

    found = [
        create(driver, [keyed("a", **options), node("b", ["a"])])["a"]
        for options in ({"project": "p"}, {"project": "q"}, {"project": "p"})
    ]
    row = driver.task(mine)
    inherited = create(driver, [keyed("a"), node("b")], project_id=str(row["project_id"]))["a"]

    assert found == [mine, other, mine]
    assert inherited == mine
    assert create(driver, [keyed("a"), node("b")])["a"] not in (mine, other)


def test_a_dag_without_a_new_task_is_refused(driver: Driver) -> None:
    lint = driver.enqueue(key="k")

    with unchanged(driver), refused("TR001", "all tasks of this DAG exist"):
        create(driver, [keyed("a")])
    with unchanged(driver), refused("TR001", "the idempotency_key is used twice"):
        create(driver, [keyed("a"), keyed("b")])
    for key in ("", "x" * 201):
        with unchanged(driver), refused("TR001", "must have 1 to 200 characters"):
            create(driver, [keyed("a", key=key), node("b")])
    assert driver.state_of(lint) == "ready"


def test_the_key_of_the_dag_comes_first(driver: Driver) -> None:
    lint = driver.enqueue(key="k")
    tasks = [keyed("a"), node("b", ["a"])]
    created, ids, reused = plan(driver, *tasks, key="once")
    assert (created, reused) == (True, [lint])

    assert plan(driver, *tasks, key="once") == (False, ids, ids)


def test_a_task_that_is_added_may_exist(driver: Driver) -> None:
    graph = opened(driver)
    alone = driver.enqueue(key="k")
    query = "select id, created from treadle.add_tasks(%s, %s)"
    tasks = Jsonb([node("x"), keyed("a"), node("b", ["a"])])

    first = driver.rows(query, graph.id, tasks)
    again = driver.rows(query, graph.id, tasks)

    assert [row[1] for row in first] == [True, False, True]
    assert first[1][0] == alone
    assert again == [(task_id, False) for task_id, _ in first]
    assert graph.row["tasks"] == 2
    # The same task under another name.
    add(graph, keyed("own", key="mine"))
    assert add(graph, keyed("other", key="mine")) == graph["own"]
    start(graph)
    driver.agent("a")
    finish(driver)
    assert graph.status == "completed"


def test_a_subtask_may_exist_and_be_waited_for(driver: Driver) -> None:
    graph = create(driver, [node("parent")])
    alone = driver.enqueue(key="k")
    parent = graph.claim("parent")

    [child, found] = spawn(driver, parent, [node("child", ["lint"]), keyed("lint")])

    assert found == alone
    assert driver.task(alone)["parent_id"] is None
    assert spawn(driver, parent, [node("child", ["lint"]), keyed("lint")]) == [child, found]
    assert suspend(driver, parent, [child, found]) == "pending"
    driver.agent("a")
    finish(driver)
    assert graph.row["tasks"] == graph.row["completed"] == 2


def test_a_task_that_waits_for_its_parent_cannot_be_waited_for(driver: Driver) -> None:
    parent_id = driver.enqueue()
    driver.enqueue(key="k", after=[str(parent_id)])
    parent = driver.claim_one()

    [found] = spawn(driver, parent, [keyed("lint")])

    with refused("TR103"):
        suspend(driver, parent, [found])
    assert driver.complete(parent) == "completed"


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("first", ["a task", "a DAG"])
def test_of_two_sessions_with_one_key_the_second_depends_on_the_first(
    driver: Driver, first: str, end: str
) -> None:
    def make(session: Driver) -> Graph:
        return create(session, [node("x"), keyed("a"), node("b", ["a"])])

    def hold(session: Driver) -> object:
        return make(session) if first == "a DAG" else session.enqueue(key="k")

    graph = while_held(driver, hold, make, end=end)

    [(holder,)] = driver.rows("select id from treadle.tasks where idempotency_key = 'k'")
    assert graph["a"] == holder
    assert graph.row["tasks"] == (2 if end == "commit" else 3)
    assert driver.task(graph["b"])["blocked_count"] == 1
    assert faults(driver) == []


def test_a_holder_that_is_cancelled_at_the_same_moment_is_replaced(driver: Driver) -> None:
    alone = driver.enqueue(key="k")

    graph = while_held(
        driver,
        lambda session: session.cancel(alone),
        lambda session: create(session, [keyed("a"), node("b", ["a"])]),
    )

    assert graph["a"] != alone
    assert graph.states() == {"a": "ready", "b": "pending"}
    assert faults(driver) == []


def test_a_holder_is_completed_while_a_dag_depends_on_it(driver: Driver) -> None:
    driver.enqueue(key="k")
    claim = driver.claim_one()

    verdict = while_held(
        driver,
        lambda session: create(session, [keyed("a"), node("b", ["a"])]),
        lambda session: session.complete(claim),
    )

    assert verdict == "completed"
    assert driver.claim_one().name == "b"
    assert faults(driver) == []


def test_a_circle_through_a_task_that_exists_is_refused(driver: Driver) -> None:
    graph = create(driver, [node("a"), keyed("b", "a")])
    other = create(driver, [keyed("lint"), node("c", ["lint"])])

    with refused("TR103"):
        depend(driver, graph["a"], other["c"])


async def test_in_python_nodes_and_subtasks_have_keys(app: Treadle) -> None:
    @app.task()
    async def lint(pr: int) -> str:
        return f"pr {pr} is fine"

    @app.task()
    async def report(of: str) -> str:
        return f"report: {of}"

    @app.task()
    async def review(ctx: Context) -> str:
        child = await ctx.spawn(lint.using(key="pr-1"), pr=1)
        other = await ctx.spawn(report, of=child.output)
        return str(await other.result())

    alone = await lint.using(key="pr-1").enqueue(pr=1)
    async with app.dag("d") as dag:
        found = dag.add(lint, options={"key": "pr-1"}, pr=1)
        made = dag.add(report.using(after=[alone]), of=found.output)
        dag.add(review)
    assert found.id == alone.id
    assert (found.handle.created, made.handle.created) == (False, True)

    await app.run_worker(until_empty=True)

    assert await made.handle.result(timeout=20) == "report: pr 1 is fine"
    assert await dag.nodes[2].handle.result(timeout=20) == "report: pr 1 is fine"
    assert (await dag.wait(timeout=20)).status == "completed"
