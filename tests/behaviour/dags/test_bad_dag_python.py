"""The Python API rejects an invalid DAG with a clear error, and nothing changes."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged
from treadle import Dag, Treadle
from treadle.errors import InvalidArgument, TreadleError
from treadle.producer.task import Task

Build = Callable[[Dag, Task], Any]


def circle(dag: Dag, task: Task) -> None:
    """Two tasks that wait for each other, by name."""
    dag.add("code", name="a", after=["b"])
    dag.add("code", name="b", after=["a"])


def hidden(dag: Dag, task: Task) -> None:
    """An output in a list."""
    dag.add("code", facts=[{"deep": dag.add(task, name_of="x").output}])


def twice_given(dag: Dag, task: Task) -> None:
    """The same parameter as an argument and as an input."""
    dag.add(task, name_of="x", inputs={"name_of": dag.add("code")})


NO_TASK: Any = 5
BAD: dict[str, tuple[Build, type[TreadleError], str]] = {
    "no tasks": (lambda dag, task: None, InvalidArgument, "has no tasks"),
    "no task at all": (lambda dag, task: dag.add(NO_TASK), InvalidArgument, "5 is not a task"),
    "two of a name": (
        lambda dag, task: [dag.add("code", name="a"), dag.add("code", name="a")],
        InvalidArgument,
        "two tasks of the DAG are named a",
    ),
    "an unknown name": (lambda dag, task: dag.add("code", after=["b"]), TreadleError, "b"),
    "an unknown id": (
        lambda dag, task: dag.add("code", after=["01890000-0000-7000-8000-00000000dead"]),
        InvalidArgument,
        "00000000dead",
    ),
    "itself": (lambda dag, task: dag.add("code", name="a", after="a"), TreadleError, "a"),
    "a circle": (circle, TreadleError, "a"),
    "a missing argument": (lambda dag, task: dag.add(task), InvalidArgument, "name_of: Field req"),
    "a wrong argument": (
        lambda dag, task: dag.add(task, name_of=5, inputs={"times": dag.add("code")}),
        InvalidArgument,
        r"name_of: Input should be a valid string\n",
    ),
    "an input it does not take": (
        lambda dag, task: dag.add(task, name_of="x", loud=dag.add("code").output),
        InvalidArgument,
        "loud: Extra inputs",
    ),
    "an input that is no reference": (
        lambda dag, task: dag.add("code", inputs={"x": "nonsense"}),
        InvalidArgument,
        "input x refers to",
    ),
    "an input that is no task": (
        lambda dag, task: dag.add("code", inputs={"x": NO_TASK}),
        InvalidArgument,
        "5 is not a task",
    ),
    "an output inside of a value": (hidden, InvalidArgument, "facts contains an output inside"),
    "argument and input": (
        twice_given,
        InvalidArgument,
        "name_of is both an argument and an input",
    ),
    "a key of a task": (
        lambda dag, task: dag.add(task.using(key="k" * 201), name_of="x"),
        InvalidArgument,
        "must have 1 to 200 characters",
    ),
    "a held task": (
        lambda dag, task: dag.add(task.using(hold=True), name_of="x"),
        InvalidArgument,
        "hold",
    ),
    "a NUL": (
        lambda dag, task: dag.add("code", text="\x00"),
        InvalidArgument,
        r"dag\.tasks\[0\]\.spec\.text contains a NUL",
    ),
    "a part that no path can name": (
        lambda dag, task: dag.add("code").output["a.b"],
        InvalidArgument,
        "cannot be a part",
    ),
    "an id before there is one": (
        lambda dag, task: dag.add("code").id,
        InvalidArgument,
        "does not exist yet",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_dag_raises_its_error_and_nothing_changes(
    app: Treadle, driver: Driver, name: str
) -> None:
    build, error, words = BAD[name]

    @app.task()
    async def greet(name_of: str, times: int = 1) -> None: ...

    with unchanged(driver), pytest.raises(error, match=words):
        async with app.dag("bad") as dag:
            build(dag, greet)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_dead_letter": "explode"}, "on_dead_letter"),
        ({"budget_usd": -1}, "budget"),
        ({"key": "k" * 300}, "key"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_bad_options_of_a_dag_are_refused(
    app: Treadle, driver: Driver, options: dict[str, Any], words: str
) -> None:
    with unchanged(driver), pytest.raises(InvalidArgument) as raised:
        async with app.dag("bad", **options) as dag:
            dag.add("code")

    assert words in f"{raised.value} {raised.value.hint}"


async def test_the_tasks_of_one_dag_are_not_those_of_another(app: Treadle) -> None:
    async with app.dag("one") as one:
        node = one.add("code")

    with pytest.raises(InvalidArgument, match="code belongs to another DAG") as raised:
        async with app.dag("two") as two:
            two.add("code", after=[node])
    assert "node.id" in (raised.value.hint or "")

    async with app.dag("two") as two:
        later = two.add("code", after=[node.id, node.handle], inputs={"x": node.handle})
    assert (await app.db.tasks.get(later.id))["status"] == "pending"


async def test_nothing_is_added_after_the_block(app: Treadle, driver: Driver) -> None:
    async with app.dag("done") as dag:
        dag.add("code")

    with unchanged(driver), pytest.raises(InvalidArgument, match="the DAG done is already created"):
        dag.add("code")


async def test_arguments_to_come_are_not_missing_and_those_given_are_checked(
    app: Treadle, driver: Driver
) -> None:
    @app.task()
    async def greet(name_of: str, times: int) -> None: ...

    async with app.dag("fine") as dag:
        first = dag.add("code")
        node = dag.add(greet, name_of=first.output["name"], times=2)

    stored = driver.task(node.id)
    assert stored["spec"] == {"times": 2}
    assert stored["inputs"] == {"name_of": f"task:{first.id}:output.name"}


async def test_an_error_on_the_callers_connection_leaves_it_usable_in_a_savepoint(
    app: Treadle, driver: Driver
) -> None:
    with psycopg.connect(driver.url) as conn:
        with (
            pytest.raises(TreadleError, match="nowhere"),
            conn.transaction(),
            app.dag("bad", conn=conn) as dag,
        ):
            dag.add("code", after=["nowhere"])
        with app.dag("good", conn=conn) as dag:
            dag.add("code")
        conn.commit()

    assert driver.rows("select name from treadle.dags") == [("good",)]
