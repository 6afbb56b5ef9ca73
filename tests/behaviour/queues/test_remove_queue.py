"""A queue can be deleted once it has no tasks and nothing uses it."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged

IN_USE = {
    "it has tasks": "select treadle.enqueue_task('mail', 'code')",
    "agent a serves it": "select treadle.register_agent('a', p_queues => '{mail}')",
    "schedule s enqueues": """select treadle.define_schedule('s', '{"cron": "0 * * * *", "task":
        {"type": "code", "queue": "mail"}}', '{"next_at": "2099-01-01T00:00:00Z"}')""",
    "trigger t enqueues": """select treadle.define_trigger('t', '{"on": "x", "dag":
        {"name": "d", "tasks": [{"type": "code", "queue": "mail"}]}}')""",
}


def remove(driver: Driver, name: str = "mail") -> None:
    """Delete a queue."""
    driver.rows("select treadle.remove_queue(%s, 'ann')", name)


def queue_with_lanes(driver: Driver) -> Driver:
    """Create a queue that had a task, so that it has lanes."""
    driver.rows("select treadle.define_queue('mail')")
    driver.rows("select treadle.enqueue_task('mail', 'code')")
    driver.rows("delete from treadle.tasks")
    return driver


@pytest.fixture
def queue(driver: Driver) -> Driver:
    return queue_with_lanes(driver)


def test_an_empty_queue_is_deleted_with_its_lanes(queue: Driver) -> None:
    remove(queue)

    assert queue.rows("select name from treadle.queues") == [("default",)]
    assert queue.rows("select id from treadle.lanes where queue = 'mail'") == []
    assert queue.rows("select actor, queue from treadle.events where kind = 'queue.removed'") == [
        ("ann", "mail")
    ]
    with refused("TR202", "'mail'"):
        queue.enqueue(queue="mail")


@pytest.mark.parametrize("problem", IN_USE)
def test_a_queue_in_use_stays(queue: Driver, problem: str) -> None:
    queue.rows(IN_USE[problem])

    with unchanged(queue), refused("TR102", problem):
        remove(queue)


def test_a_task_that_has_ended_keeps_its_queue(queue: Driver) -> None:
    task_id = queue.enqueue(queue="mail")
    queue.rows("select treadle.cancel_tasks(%s)", [task_id])

    with unchanged(queue), refused("TR102", "it has tasks"):
        remove(queue)


@pytest.mark.parametrize("name", ["default", "work", "push", "harness"])
def test_queues_that_treadle_uses_stay(driver: Driver, name: str) -> None:
    with unchanged(driver), refused("TR001", "Treadle itself uses it"):
        remove(driver, name)


def test_an_unknown_queue_cannot_be_deleted(driver: Driver) -> None:
    with unchanged(driver), refused("TR202", "'mial'"):
        remove(driver, "mial")


def test_a_task_that_is_being_enqueued_keeps_its_queue(queue: Driver) -> None:
    def deleted(second: Driver) -> str | None:
        try:
            remove(second)
        except psycopg.Error as error:
            return error.sqlstate
        return None

    verdict = while_held(queue, lambda first: first.enqueue(queue="mail"), deleted)

    assert verdict == "TR102"
    assert queue.value("select count(*) from treadle.lanes where queue = 'mail'") == 1


def test_a_task_that_comes_while_its_queue_is_deleted_is_refused(queue: Driver) -> None:
    def enqueued(second: Driver) -> str | None:
        try:
            second.enqueue(queue="mail")
        except psycopg.Error as error:
            return error.sqlstate
        return None

    assert while_held(queue, remove, enqueued) == "TR202"
    assert queue.rows("select id from treadle.tasks") == []
