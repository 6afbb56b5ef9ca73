"""Concurrent pruners, and pruners concurrent with retry, fork, dependencies and claims."""

import random
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import create, node
from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused
from tests.drivers.retention import complete_one, die, exists, keep, prune
from tests.drivers.steps import claimed, fork, save_step

EVERYTHING = {"keep_completed_s": 0, "keep_cancelled_s": 0, "keep_dead_s": 0}
TASKS, WORKERS = 300, 4
TASKS = 400


def test_a_task_that_is_being_retried_is_skipped(driver: Driver) -> None:
    task = die(driver)
    keep(driver, **EVERYTHING)

    gone = while_held(driver, lambda first: first.retry(task), prune, waits=False)

    assert gone == 0
    assert driver.state_of(task) == "ready"


def test_a_task_that_is_being_pruned_cannot_be_retried_any_more(driver: Driver) -> None:
    task = die(driver)
    keep(driver, **EVERYTHING)

    with refused("TR201"):
        while_held(driver, prune, lambda second: second.retry(task))


def test_a_task_that_is_being_forked_stays_until_the_fork_has_its_steps(driver: Driver) -> None:
    claim = claimed(driver)
    for name in ("draft", "check"):
        save_step(driver, claim, name)
    driver.complete(claim)
    keep(driver, **EVERYTHING)

    assert while_held(driver, lambda one: fork(one, claim.id, "check"), prune, waits=False) == 0
    with refused("TR201"):
        while_held(driver, prune, lambda second: fork(second, claim.id, "check"))


def test_a_task_that_another_begins_to_depend_on_stays(driver: Driver) -> None:
    task = complete_one(driver)
    keep(driver, **EVERYTHING)

    def depend(session: Driver) -> None:
        create(session, [node("u", [str(task)])])

    assert while_held(driver, depend, prune, waits=False) == 0
    assert exists(driver, task)


def test_a_dag_of_which_somebody_holds_one_task_stays_whole(driver: Driver) -> None:
    graph = create(driver, [node("a"), node("b", ["a"])])
    graph.complete("a", "b")
    keep(driver, **EVERYTHING)

    def hold(session: Driver) -> None:
        session.rows("select id from treadle.tasks where id = %s for update", graph["b"])

    assert while_held(driver, hold, prune, waits=False) == 0
    assert graph.states() == {"a": "completed", "b": "completed"}
    assert prune(driver) == 2


def test_two_pruners_take_each_task_once(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 300)
    for claim in driver.claim(limit=300):
        driver.complete(claim)
    keep(driver, **EVERYTHING)

    gone = together(driver, 4, lambda session, _: prune(session, 20))

    # What one held when another came by is left to the first.
    assert sum(gone) == 300
    assert driver.value("select count(*) from treadle.task_history") == 300
    assert driver.value("select count(distinct id) from treadle.task_history") == 300


@pytest.mark.requirement("B9")
def test_pruners_beside_everything_else_lose_nothing(driver: Driver) -> None:
    """Every task exists or is archived once, and none is partly deleted."""
    keep(driver, **EVERYTHING)
    made: list[UUID] = []
    finished: list[int] = []

    def work(session: Driver, number: int) -> None:
        chance = random.Random(number)
        name = session.agent(f"agent-{number}")
        while len(made) < TASKS:
            task = session.enqueue(title=str(number))
            made.append(task)
            if chance.random() < 0.3:
                plan = {"name": "d", "tasks": [node("a"), node("b", ["a", str(task)])]}
                try_to(partial(session.rows, "select treadle.create_dag(%s)", Jsonb(plan)))
            for claim in session.claim(name, 5):
                end(session, claim, chance)
        finished.append(number)

    def end(session: Driver, claim: Any, chance: random.Random) -> None:
        if chance.random() < 0.3:
            save_step(session, claim, calls=[{"usd": "0.01"}])
            save_step(session, claim, "check")
        if chance.random() < 0.2:
            session.fail(claim, action="fail")
            try_to(lambda: session.retry(claim.id))
        else:
            session.complete(claim)
            try_to(lambda: fork(session, claim.id, "check"))

    def tidy(session: Driver, number: int) -> None:
        while len(finished) < WORKERS:
            prune(session, 7 * number + 1)

    together(
        driver, 2 + WORKERS, lambda session, n: tidy(session, n) if n < 2 else work(session, n)
    )

    left = {task for (task,) in driver.rows("select id from treadle.tasks")}
    history = [task for (task,) in driver.rows("select id from treadle.task_history")]
    assert len(history) > 50
    assert len(history) == len(set(history))
    assert left.isdisjoint(history)
    assert set(made) <= left | set(history)
    check_whole(driver)


def try_to(call: Any) -> None:
    """Something that may come too late: then it is refused in words."""
    try:
        call()
    except psycopg.Error as error:
        if not str(error.sqlstate).startswith("TR"):
            raise


def check_whole(driver: Driver) -> None:
    """No part without its task, no DAG without all of its tasks, no dollar missing."""
    for table in ("attempts", "steps", "waits", "dead_letters", "spend", "dependencies"):
        orphans = f"""
            select task_id from treadle.{table}
            except select id from treadle.tasks
        """
        assert driver.rows(orphans) == [], table
    assert (
        driver.rows("""
        select dags.id from treadle.dags
        where dags.tasks <> (select count(*) from treadle.tasks where tasks.dag_id = dags.id)
    """)
        == []
    )
    assert (
        driver.rows("""
        select tasks.id from treadle.tasks
        where tasks.dag_id is not null and tasks.dag_id not in (select id from treadle.dags)
    """)
        == []
    )
    assert (
        driver.rows("""
        select id from treadle.dag_history
        where (dag ->> 'tasks')::integer
          <> (select count(*) from treadle.task_history where dag_id = dag_history.id)
    """)
        == []
    )
    kept = "select coalesce(sum(usd), 0) from treadle.daily_spend"
    told = """
        select coalesce(sum(cost_usd), 0)
        from (
          select cost_usd from treadle.tasks union all select cost_usd from treadle.task_history
        ) as each
    """
    assert driver.value(kept) == driver.value(told) > 0
