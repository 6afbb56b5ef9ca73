"""Each part of what a restricted token sees, broken on purpose, is noticed by a test."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

tasks = Killers("access.test_visible_tasks")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "any queue": Mutant(
        "is_visible",
        {"coalesce(p_task_queue = any (p_queues), false)": "true"},
        tasks.test_each_restriction_must_hold,
    ),
    "any project": Mutant(
        "is_visible",
        {"coalesce(p_task_project = p_project, false)": "true"},
        tasks.test_each_restriction_must_hold,
    ),
    "tasks of no project": Mutant(
        "is_visible",
        {"p_task_project = p_project, false": "p_task_project = p_project, true"},
        tasks.test_each_restriction_must_hold,
    ),
    "any agent": Mutant(
        "is_visible",
        {"coalesce(p_task_agent = p_agent, true)": "true"},
        tasks.test_a_claimed_task_is_that_of_the_agent_that_has_it,
    ),
    "no free tasks": Mutant(
        "is_visible",
        {"coalesce(p_task_agent = p_agent, true)": "coalesce(p_task_agent = p_agent, false)"},
        tasks.test_each_restriction_must_hold,
    ),
    "a DAG without tasks": Mutant(
        "visible_dags",
        {"    exists (": "    true or exists ("},
        tasks.test_a_dag_is_visible_when_all_its_tasks_are,
    ),
    "a DAG with one visible task": Mutant(
        "visible_dags",
        {"and not exists": "and exists", "and not treadle.is_visible": "and treadle.is_visible"},
        tasks.test_a_dag_is_visible_when_all_its_tasks_are,
    ),
    "a task that is not locked": Mutant(
        "lock_visible",
        {"perform treadle.lock_tasks(p_tasks);": ""},
        tasks.test_a_write_waits_for_a_concurrent_move_of_the_task_and_then_fails,
    ),
    "a DAG that is not locked": Mutant(
        "lock_visible",
        {"perform treadle.lock_whole_dag(p_dag);": ""},
        tasks.test_a_write_to_a_dag_waits_for_a_concurrent_move_of_one_of_its_tasks,
    ),
    "a lock that sees everything": Mutant(
        "lock_visible",
        {"return not exists (": "return true or not exists ("},
        tasks.test_a_write_waits_for_a_concurrent_move_of_the_task_and_then_fails,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
