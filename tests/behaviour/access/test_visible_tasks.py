"""A restricted token sees the tasks of its queues, its project and its agent, and their DAGs."""

import json
from typing import Any
from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held

Restrictions = tuple[list[str] | None, UUID | None, str | None]
VISIBLE = "select id from treadle.visible_{}(%s, %s, %s)"
LOCK = "select treadle.lock_visible(%s, %s, %s, %s, %s)"


def visible(driver: Driver, of: Restrictions, what: str = "tasks") -> set[UUID]:
    return {row[0] for row in driver.rows(VISIBLE.format(what), *of)}


def projects(driver: Driver) -> list[UUID]:
    return [driver.value("select id from treadle.define_project(%s)", name) for name in "pq"]


def dag(driver: Driver, *tasks: dict[str, Any]) -> UUID:
    named = [{"type": "code", "name": str(number), **task} for number, task in enumerate(tasks)]
    plan = json.dumps({"name": "d", "tasks": named})
    made: UUID = driver.value("select dag_id from treadle.create_dag(%s)", plan)
    return made


@pytest.mark.requirement("B10")
def test_each_restriction_must_hold(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    mine, theirs = projects(driver)
    tasks = {
        (queue, project, agent): driver.value(
            "select treadle.enqueue_task(%s, 'code', p_options => %s)",
            queue,
            json.dumps(
                {
                    **({"project_id": str(project)} if project else {}),
                    **({"assigned_agent": agent} if agent else {}),
                }
            ),
        )
        for queue in ("default", "mail")
        for project in (None, mine, theirs)
        for agent in (None, "a", "b")
    }

    for queues in (None, ["mail"], ["mail", "default"], []):
        for project in (None, mine):
            for agent in (None, "a"):
                assert visible(driver, (queues, project, agent)) == {
                    task_id
                    for (of_queue, of_project, of_agent), task_id in tasks.items()
                    if (queues is None or of_queue in queues)
                    and (project is None or of_project == project)
                    and (agent is None or of_agent in (None, agent))
                }


@pytest.mark.requirement("B10")
def test_a_claimed_task_is_that_of_the_agent_that_has_it(driver: Driver) -> None:
    driver.agent("b")
    task = driver.enqueue()
    assert visible(driver, (None, None, "a")) == {task}

    driver.claim_one("b")

    assert visible(driver, (None, None, "a")) == set()
    assert visible(driver, (None, None, "b")) == {task}


@pytest.mark.requirement("B10")
def test_a_dag_is_visible_when_all_its_tasks_are(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    mail, other = {"queue": "mail"}, {"assigned_agent": "b"}
    own, mixed, foreign = dag(driver, mail, mail), dag(driver, mail, other), dag(driver, other)
    empty = driver.value("select treadle.open_dag('empty')")

    assert visible(driver, (["mail"], None, None), "dags") == {own}
    assert visible(driver, (None, None, "a"), "dags") == {own}
    assert visible(driver, (None, None, "b"), "dags") == {own, mixed, foreign}
    assert empty not in visible(driver, (["mail", "default"], None, None), "dags")


@pytest.mark.requirement("B10")
def test_a_write_waits_for_a_concurrent_move_of_the_task_and_then_fails(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    task = driver.value("select treadle.enqueue_task('mail', 'code')")

    def move(session: Driver) -> None:
        session.rows("update treadle.tasks set queue = 'default' where id = %s", task)

    def lock(session: Driver) -> bool:
        return bool(session.value(LOCK, [task], None, ["mail"], None, None))

    assert lock(driver.another()) is True
    assert while_held(driver, move, lock) is False


@pytest.mark.requirement("B10")
def test_a_write_to_a_dag_waits_for_a_concurrent_move_of_one_of_its_tasks(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    made = dag(driver, {"queue": "mail"}, {"queue": "mail"})

    def move(session: Driver) -> None:
        session.rows("update treadle.tasks set queue = 'default' where name = '1'")

    def lock(session: Driver) -> bool:
        return bool(session.value(LOCK, [], made, ["mail"], None, None))

    assert lock(driver.another()) is True
    assert while_held(driver, move, lock) is False


def test_tasks_that_do_not_exist_are_left_to_the_write(driver: Driver) -> None:
    assert driver.value(LOCK, [UUID(int=1)], None, ["mail"], None, None) is True
