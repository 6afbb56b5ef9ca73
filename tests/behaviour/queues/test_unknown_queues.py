"""Queues are made on purpose: a misspelled one is refused at once, with the name that was meant."""

from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle
from treadle.errors import UnknownQueue

DAG = '{"name": "d", "tasks": [{"type": "code", "queue": "deafult"}]}'
SQL = {
    "one": "select treadle.enqueue_task('deafult', 'code')",
    "many": """select treadle.enqueue_tasks('[{"type": "code", "queue": "deafult"}]')""",
    "bulk": "select treadle.enqueue_batch('deafult', 'code', '{}')",
    "plain": "insert into treadle.tasks (queue, type) values ('deafult', 'code')",
    "dag": f"select treadle.create_dag('{DAG}')",
    "schedule": """select treadle.define_schedule('s', '{"cron": "0 * * * *", "task":
        {"type": "code", "queue": "deafult"}}', '{"next_at": "2099-01-01T00:00:00Z"}')""",
    "trigger": """select treadle.define_trigger('t', '{"on": "x", "task":
        {"type": "code", "queue": "deafult"}}')""",
}


@pytest.mark.parametrize("how", SQL)
def test_sql_refuses_a_misspelled_queue(driver: Driver, how: str) -> None:
    with unchanged(driver), refused("TR202", "there is no queue 'deafult'"):
        driver.rows(SQL[how])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("deafult", "Did you mean 'default'? To create a queue: treadle queues create deafult, "),
        ("Default", "Did you mean 'default'? To create a queue: treadle queues create name, "),
        ("mial", "Did you mean 'mail'? "),
        ("mails", "Did you mean 'mail'? "),
        ("payments", "Known queues: default, mail. To create a queue: "),
    ],
)
def test_the_error_names_the_queue_that_was_probably_meant(
    driver: Driver, name: str, hint: str
) -> None:
    driver.rows("select treadle.define_queue('mail')")

    with pytest.raises(psycopg.Error) as raised:
        driver.rows("select treadle.enqueue_batch(%s, 'code', array['{}'::jsonb])", name)

    assert (raised.value.diag.message_hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("default", "default", 0), ("deafult", "default", 1), ("", "abc", 3), ("abc", "", 3),
        ("kitten", "sitting", 3), ("mail", "mails", 1), ("ab", "ba", 1), ("a", "b", 1),
    ],
)  # fmt: skip
def test_the_distance_of_two_names(driver: Driver, a: str, b: str, distance: int) -> None:
    assert driver.value("select treadle.edit_distance(%s, %s)", a, b) == distance


def test_an_unknown_type_has_a_suggestion_too(driver: Driver) -> None:
    with pytest.raises(psycopg.Error) as raised:
        driver.enqueue(type="cdoe")

    assert (raised.value.diag.message_hint or "").startswith("Did you mean 'code'? ")


def test_an_unknown_queue_that_an_application_uses_is_refused(driver: Driver) -> None:
    with unchanged(driver), refused("TR202", "'deafult'"):
        driver.rows("select treadle.declare_types('{\"work\": {}}', '{mail}', '{mail,deafult}')")


async def in_dag(app: Treadle, work: Any) -> None:
    async with app.dag("d") as dag:
        dag.add(work, options={"queue": "deafult"})


async def in_schedule(app: Treadle, work: Any) -> None:
    app.schedule("s", "0 * * * *", work, options={"queue": "deafult"})
    await app.schedules.declare()


async def in_worker(app: Treadle, work: Any) -> None:
    await app.run_worker(queues=["deafult"], until_empty=True)


PYTHON: dict[str, Callable[[Treadle, Any], Awaitable[Any]]] = {
    "using": lambda _, work: work.using(queue="deafult").enqueue(),
    "many": lambda _, work: work.using(queue="deafult").enqueue_many([{}]),
    "by name": lambda app, _: app.enqueue("code", queue="deafult"),
    "dag": in_dag,
    "schedule": in_schedule,
    "worker": in_worker,
}


@pytest.mark.parametrize("how", PYTHON)
async def test_python_refuses_a_misspelled_queue_and_makes_nothing(
    app: Treadle, driver: Driver, how: str
) -> None:
    @app.task
    async def work() -> None: ...

    with unchanged(driver), pytest.raises(UnknownQueue, match="'deafult'") as raised:
        await PYTHON[how](app, work)

    assert "Did you mean 'default'?" in str(raised.value.hint)


@pytest.mark.parametrize("how", ["enqueue", "worker"])
async def test_a_misspelled_queue_of_a_type_is_refused(
    app: Treadle, driver: Driver, how: str
) -> None:
    @app.task(queue="deafult")
    async def work() -> None: ...

    with unchanged(driver), pytest.raises(UnknownQueue, match="'deafult'"):
        await (work.enqueue() if how == "enqueue" else app.run_worker(until_empty=True))


MADE: dict[str, Callable[[Treadle, Any], Awaitable[Any]]] = {
    **{name: call for name, call in PYTHON.items() if name not in {"schedule", "trigger"}},
    "own queue": lambda _, work: work.enqueue(),
}


@pytest.mark.parametrize("how", MADE)
async def test_a_queue_that_code_declares_is_made_when_it_is_used(
    app: Treadle, driver: Driver, how: str
) -> None:
    @app.task(queue=app.queue("deafult"))
    async def work() -> None: ...

    await MADE[how](app, work)

    assert driver.rows("select name from treadle.queues order by 1") == [
        ("deafult",),
        ("default",),
    ]


async def test_a_worker_makes_the_declared_queues_and_leaves_settings_alone(
    app: Treadle, driver: Driver
) -> None:
    @app.task
    async def work() -> None: ...

    app.queue("mail")
    driver.rows("select treadle.define_queue('night', '{\"max_attempts\": 9}')")
    app.queue("night")

    await app.run_worker(until_empty=True)

    found = driver.rows("select name, max_attempts from treadle.queues order by 1")
    assert found == [("default", None), ("mail", None), ("night", 9)]
