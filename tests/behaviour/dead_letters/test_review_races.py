"""Concurrent reviewers: one decision counts for each letter, and the others get an error."""

from collections import Counter
from uuid import UUID

import pytest

from tests.drivers.dags import shaped
from tests.drivers.dead_letters import (
    dead,
    decisions,
    letter_of,
    resolve,
    resolve_where,
    verdicts,
    where_rows,
)
from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused

pytestmark = pytest.mark.requirement("R3")


@pytest.mark.parametrize("first", ["retry", "cancel"])
def test_the_second_of_two_reviewers_gets_the_name_of_the_first(driver: Driver, first: str) -> None:
    task = dead(driver)

    late = while_held(
        driver,
        lambda one: resolve(one, [task], first, actor="ada"),
        lambda other: resolve(other, [task], "cancel", actor="bob"),
    )

    assert late[task]["verdict"] == "already"
    assert late[task]["why"].startswith(f"ada decided {first} at ")
    assert [each["actor"] for each in decisions(driver, task)] == ["ada"]


def test_a_decision_that_is_taken_back_leaves_the_letter_to_the_other(driver: Driver) -> None:
    task = dead(driver)

    late = while_held(
        driver,
        lambda one: resolve(one, [task], "cancel", actor="ada"),
        lambda other: resolve(other, [task], "retry", actor="bob"),
        end="rollback",
    )

    assert (late[task]["verdict"], driver.state_of(task)) == ("retried", "ready")
    assert [each["actor"] for each in decisions(driver, task)] == ["bob"]


@pytest.mark.parametrize(("first", "more"), [("retry", {}), ("escalate", {"to": "ops"})])
def test_under_repeatable_read_the_second_has_to_look_again(
    driver: Driver, first: str, more: dict[str, str]
) -> None:
    task = dead(driver)

    def decide(other: Driver) -> None:
        other.rows("begin isolation level repeatable read")
        other.rows("select count(*) from treadle.dead_letters")
        with refused("40001"):
            resolve(other, [task], "cancel", actor="bob")
        other.rows("rollback")

    while_held(driver, lambda one: resolve(one, [task], first, **more), decide)

    assert [each["decision"] for each in decisions(driver, task)] == [first]


def test_a_letter_that_is_retried_while_its_group_is_cancelled_runs(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(3)]
    group = letter_of(driver, tasks[0])["fingerprint"]

    rows = while_held(
        driver,
        lambda one: one.retry(tasks[1]),
        lambda other: where_rows(other, {"fingerprint": group}, "cancel"),
    )

    assert {row["verdict"]: row["letters"] for row in rows} == {"cancelled": 2, "already": 1}
    assert [driver.state_of(each) for each in tasks] == ["cancelled", "ready", "cancelled"]
    assert [each["decision"] for each in decisions(driver, tasks[1])] == ["retry"]


def test_a_group_that_is_retried_while_one_of_it_is_cancelled(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(3)]

    with_lock = while_held(
        driver,
        lambda one: resolve_where(one, {"failure_class": "error"}),
        lambda other: verdicts(other, [tasks[0]], "cancel"),
    )

    assert with_lock == {tasks[0]: "already"}
    assert {driver.state_of(each) for each in tasks} == {"ready"}


def test_many_reviewers_of_the_same_letters_make_one_decision_each(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(24)]
    ways = ("retry", "cancel", "where", "modify", "escalate")

    def decide(session: Driver, number: int) -> list[tuple[UUID, str]]:
        way = ways[number % len(ways)]
        mine = tasks[number:] + tasks[:number]
        done: list[tuple[UUID, str]] = []
        for at in range(0, len(mine), 6):
            some = mine[at : at + 6]
            if way == "where":
                resolve_where(session, {"failure_class": "error"}, "retry", limit=4, actor="w")
            elif way == "modify":
                changes = {"changes": {"priority": 9}}
                done += verdicts(session, some, "modify_and_retry", **changes).items()
            elif way == "escalate":
                verdicts(session, some, "escalate", to=f"ops {number}")
            else:
                done += verdicts(session, some, way).items()
        return done

    told = [each for some in together(driver, 10, decide) for each in some]

    final = Counter(
        each["task_id"]
        for task in tasks
        for each in decisions(driver, task)
        if each["decision"] != "escalate"
    )
    assert final == Counter(tasks)
    effective = Counter(task for task, verdict in told if verdict != "already")
    by_filter = driver.value(
        "select count(*) from treadle.dead_letter_decision_log where actor = 'w'"
    )
    assert max(effective.values(), default=1) == 1
    assert effective.total() + by_filter == len(tasks)


def test_reviewers_of_a_dag_and_its_cancellation_do_not_block_each_other(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": [], "d": ["b", "c"]})
    graph.give_up("a")
    graph.give_up("c")

    def decide(session: Driver, number: int) -> object:
        if number % 3 == 0:
            return session.rows("select treadle.cancel_dag(%s)", graph.id)
        ids = [graph["c"], graph["a"]] if number % 2 else [graph["a"], graph["c"]]
        return verdicts(session, ids, "cancel" if number % 2 else "retry")

    together(driver, 9, decide)

    assert [len(decisions(driver, graph[name])) >= 1 for name in ("a", "c")] == [True, True]
    open_letters = driver.value(
        "select count(*) from treadle.dead_letters where resolution is null"
    )
    assert open_letters == 0
