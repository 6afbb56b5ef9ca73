"""DAGs through the Python API: created completely or not at all, with edges, inputs and ends."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged
from treadle import Dag, OpenDag, Treadle, optional
from treadle.db.calls import Calls
from treadle.errors import (
    CycleRefused,
    DagNotFound,
    IllegalTransition,
    InvalidArgument,
    ResultTimeout,
    Unavailable,
    UnknownType,
)
from treadle.producer.task import Task


@pytest.fixture
def page(app: Treadle) -> dict[str, Task]:
    """The tasks of a landing page."""

    @app.task(queue=app.queue("pages"))
    async def research(topic: str) -> dict[str, Any]:
        return {"title": f"About {topic}", "facts": [topic, "more"]}

    @app.task()
    async def design(brief: dict[str, Any], title: str, colour: str = "blue") -> str:
        return f"{title} in {colour}, {len(brief['facts'])} facts"

    @app.task()
    async def check(page: str | None = None) -> str:
        return f"checked {page}"

    return {"research": research, "design": design, "check": check}


def edges(driver: Driver, dag_id: UUID) -> dict[str, dict[str, bool]]:
    """The names that each task waits for, with whether that is optional."""
    rows = driver.records(
        "select name, depends_on from treadle.dag_tasks where dag_id = %s", dag_id
    )
    return {row["name"]: {e["name"]: e["optional"] for e in row["depends_on"]} for row in rows}


@pytest.mark.requirement("F3")
async def test_a_block_creates_a_dag_with_its_roots_and_leaves(
    app: Treadle, driver: Driver, page: dict[str, Task]
) -> None:
    async with app.dag("Landing page", budget_usd=5, meta={"for": "spring"}) as dag:
        research = dag.add(page["research"], topic="looms")
        design = dag.add(
            page["design"].using(priority=3),
            inputs={"brief": research.output},
            title=research.output["title"],
        )
        test = dag.add(
            page["check"].call(page="x"), name="test", after=[design, optional(research)]
        )
        assert driver.value("select count(*) from treadle.tasks") == 0

    assert edges(driver, dag.id) == {
        "research": {},
        "design": {"research": False},
        "test": {"design": False, "research": True},
    }
    [row] = driver.records("select * from treadle.dag_overview where id = %s", dag.id)
    assert (row["roots"], row["leaves"]) == ([research.id], [test.id])
    assert (row["name"], row["budget_usd"], row["meta"]) == ("Landing page", 5, {"for": "spring"})
    assert [driver.state_of(node.id) for node in (research, design, test)] == [
        "ready", "pending", "pending",
    ]  # fmt: skip
    made = driver.task(design.id)
    assert (made["priority"], made["inputs"]["title"]) == (
        3, f"task:{research.id}:output.title",
    )  # fmt: skip
    assert driver.task(research.id)["queue"] == "pages"


@pytest.mark.requirement("F3")
async def test_a_block_that_fails_makes_nothing(
    app: Treadle, driver: Driver, page: dict[str, Task]
) -> None:
    async def build(then: Callable[[Dag], object]) -> None:
        async with app.dag("x") as dag:
            dag.add(page["research"], topic="looms")
            then(dag)

    with unchanged(driver):
        with pytest.raises(ZeroDivisionError):
            await build(lambda dag: 1 / 0)
        with pytest.raises(UnknownType):
            await build(lambda dag: dag.add("no_such_type"))
        with pytest.raises(InvalidArgument, match="does not exist yet"):
            await build(lambda dag: dag.id)


async def test_outputs_become_arguments_and_the_end_can_be_awaited(
    app: Treadle, page: dict[str, Task]
) -> None:
    async with app.dag("Landing page") as dag:
        research = dag.add(page["research"], topic="looms")
        # Outputs go where arguments go; a node alone means all of its output.
        design = dag.add(page["design"], brief=research, title=research.output["title"])
        last = dag.add("check", after=[design], inputs={"page": design.output})
    with pytest.raises(ResultTimeout, match="it is running"):
        await dag.wait(timeout=1)

    await app.run_worker(until_empty=True, queues=["default", "pages"])

    end = await dag.wait(timeout=30)
    assert (end.status, end.tasks, end.completed, end.dead_lettered) == ("completed", 3, 3, 0)
    assert await last.handle.result(timeout=30) == "checked About looms in blue, 2 facts"


async def test_a_thousand_tasks_are_one_statement(
    app: Treadle, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.db.calls.open()
    statements = []
    execute = psycopg.AsyncCursor.execute

    async def counted(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        statements.append(query)
        return await execute(self, query, *args, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counted)
    async with app.dag("many") as dag:
        first = dag.add("code")
        for number in range(998):
            dag.add("code", after=first, number=number)
        dag.add("test", after=dag.nodes[1:])

    assert len(statements) == 1
    assert driver.value("select count(*) from treadle.tasks") == 1000
    assert driver.value("select count(*) from treadle.dependencies") == 998 + 998
    names = [node.name for node in dag.nodes]
    assert names[:3] == ["code", "code-2", "code-3"]
    stored = dict(driver.rows("select name, id from treadle.tasks"))
    assert {node.name: node.id for node in dag.nodes} == stored


async def test_a_lost_answer_is_asked_for_again_and_makes_nothing_twice(
    app: Treadle, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Calls.long_call
    lost: list[Any] = []

    async def forgetful(self: Calls, query: str, *parameters: object) -> Any:
        answer = await call(self, query, *parameters)
        if "create_dag" in query and not lost:
            lost.append(answer)
            raise Unavailable("gone") from psycopg.OperationalError("gone")
        return answer

    monkeypatch.setattr(Calls, "long_call", forgetful)
    async with app.dag("once") as dag:
        node = dag.add("code")

    assert lost[0][0][0] == dag.id
    assert driver.rows("select id, dag_id from treadle.tasks") == [(node.id, dag.id)]


async def test_the_same_key_is_the_same_dag(app: Treadle, driver: Driver) -> None:
    made = []
    for _ in range(2):
        async with app.dag("nightly", key="nightly-1") as dag:
            made.append((dag, dag.add("code")))

    (first, one), (second, two) = made
    assert (first.id, one.id) == (second.id, two.id)
    assert (first.created, second.created) == (True, False)
    with pytest.raises(InvalidArgument, match="has different tasks"):
        async with app.dag("other", key="nightly-1") as dag:
            dag.add("test")


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("kept", [True, False])
async def test_on_the_callers_connection_the_dag_exists_if_the_caller_commits(
    app: Treadle, driver: Driver, kept: bool
) -> None:
    with psycopg.connect(driver.url) as conn:
        with app.dag("plain", conn=conn) as dag:
            node = dag.add("code")
        assert isinstance(node.id, UUID)
        assert driver.value("select count(*) from treadle.dags") == 0
        conn.commit() if kept else conn.rollback()
    async with await psycopg.AsyncConnection.connect(driver.url) as other:
        async with app.dag("async", conn=other) as dag:
            dag.add("code")
        assert driver.value("select count(*) from treadle.dags") == int(kept)
        await (other.commit() if kept else other.rollback())

    assert driver.value("select count(*) from treadle.dags") == (2 if kept else 0)
    assert driver.value("select count(*) from treadle.tasks") == (2 if kept else 0)


async def test_a_plain_block_needs_a_plain_connection(app: Treadle) -> None:
    with pytest.raises(InvalidArgument, match="needs a plain connection"), app.dag("x"):
        pass


async def test_piece_by_piece(app: Treadle, driver: Driver, page: dict[str, Task]) -> None:
    dag = await app.open_dag("Release", key="release-1")
    again = await app.open_dag("Release", key="release-1")
    research = await dag.add(page["research"], name="research", topic="looms")
    twice = await again.add(page["research"], name="research", topic="looms")
    design = await dag.add(page["design"], brief=research.output, title="x")
    last = await dag.add("check", after=[design])

    assert again.id == dag.id
    assert (twice.id, twice.created) == (research.id, False)
    assert await dag.depend(last, research) is True
    assert await dag.depend(last, research) is False
    with pytest.raises(CycleRefused):
        await dag.depend(research, last)
    assert driver.state_of(research.id) == "created"
    assert (await dag.state()).status == "open"

    await dag.start()

    assert driver.state_of(research.id) == "ready"
    assert await dag.cancel("not now") == 3
    assert (await dag.wait(timeout=30)).cancelled == 3
    with pytest.raises(IllegalTransition):
        await dag.add("code")
    assert await dag.retry() == 3
    assert (await dag.state()).status == "running"
    with pytest.raises(DagNotFound):
        await OpenDag(app, uuid4()).start()
