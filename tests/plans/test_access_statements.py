"""Visibility is checked row by row, whatever else the tables contain."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.drivers.plans import BATCH, Conn, counters, enqueue
from treadle.db.reach import Reach

REACHES = {
    "queue": Reach(queues=("default",)),
    "agent": Reach(agent="a"),
    "queue and agent": Reach(queues=("default",), agent="a"),
}
reaches = pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES.keys())
PAGE = sql.SQL("select id from treadle.{} where {} order by id desc limit 51")


@pytest.fixture(autouse=True)
def _leave_nothing(hostile: Conn) -> Iterator[None]:
    yield
    hostile.execute(
        "select treadle.cancel_tasks(array(select id from treadle.tasks where status = 'ready'))"
    )
    hostile.execute("delete from treadle.events")


def costs(conn: Conn, query: sql.Composed, reach: Reach, **also: Any) -> tuple[int, int, list[Any]]:
    """Sequential scans, rows fetched, and the answer, with a plan for any parameters."""
    with conn.transaction():
        conn.execute("set local plan_cache_mode = force_generic_plan")
        scans, rows = counters(conn)
        answer = conn.execute(query, {**reach.parameters, **also}, prepare=True).fetchall()
        scans_after, rows_after = counters(conn)
    return scans_after - scans, rows_after - rows, answer


@reaches
def test_a_page_of_tasks_reads_that_page(hostile: Conn, reach: Reach) -> None:
    agent = "coalesce(agent_id, assigned_agent)"
    query = PAGE.format(sql.Identifier("task_details"), reach.of_row(agent))

    scans, rows, found = costs(hostile, query, reach)

    assert (scans, len(found)) == (0, 51)
    assert rows <= 4 * 51


@reaches
@pytest.mark.parametrize("condition", [Reach.of_task, Reach.of_event], ids=["task", "event"])
def test_a_page_of_events_reads_the_tasks_of_that_page(
    hostile: Conn, reach: Reach, condition: Callable[[Reach], sql.Composed]
) -> None:
    enqueue(hostile, BATCH)
    hostile.execute(
        """
        insert into treadle.events (kind, task_id, queue)
        select 'x', id, 'default' from treadle.tasks where status = 'ready'
        """
    )

    scans, rows, found = costs(
        hostile, PAGE.format(sql.Identifier("event_log"), condition(reach)), reach
    )

    assert (scans, len(found)) == (0, BATCH)
    assert rows <= 10 * BATCH


@reaches
def test_a_page_of_dags_reads_the_tasks_of_these_dags(hostile: Conn, reach: Reach) -> None:
    for number in range(BATCH):
        plan = '{"name": "d", "tasks": [{"type": "code"}, {"type": "code", "name": "other"%s}]}'
        theirs = ', "assigned_agent": "b"' if number % 2 else ""
        hostile.execute("select treadle.create_dag(%s)", [plan % theirs])
    mine = BATCH if reach.agent is None else BATCH // 2

    scans, rows, found = costs(
        hostile, PAGE.format(sql.Identifier("dag_overview"), reach.of_dag("dag_overview.id")), reach
    )

    assert (scans, len(found)) == (0, mine)
    assert rows <= 20 * BATCH
    hostile.execute("delete from treadle.tasks where dag_id is not null")
    hostile.execute("delete from treadle.dags")


@reaches
def test_a_write_locks_and_reads_its_rows(hostile: Conn, reach: Reach) -> None:
    enqueue(hostile, BATCH)
    which = "select id from treadle.tasks where status = 'ready' limit 3"
    ids = [row[0] for row in hostile.execute(which)]
    query = sql.SQL("select treadle.lock_visible(%(ids)s, null, {})").format(reach.arguments)

    scans, rows, found = costs(hostile, query, reach, ids=ids)

    assert (scans, found) == (0, [(True,)])
    assert rows <= 20


def test_the_functions_are_inlined(hostile: Conn) -> None:
    for query in (
        "select id from treadle.visible_tasks(array['default'], null, null)",
        "select id from treadle.visible_dags(null, null, 'a')",
    ):
        plan = "\n".join(row[0] for row in hostile.execute(f"explain {query}".encode()))
        assert "Function Scan" not in plan, plan
        assert "is_visible" not in plan, plan


def test_a_caller_with_few_rights_may_use_them(hostile: Conn) -> None:
    with hostile.transaction():
        hostile.execute("set local role treadle_observer")
        hostile.execute("select id from treadle.visible_tasks(null, null, 'a') limit 1")
        hostile.execute("select id from treadle.visible_dags(null, null, 'a') limit 1")
    with hostile.transaction(force_rollback=True):
        hostile.execute("set local role treadle_worker")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            hostile.execute("select id from treadle.visible_tasks(null, null, 'a') limit 1")
