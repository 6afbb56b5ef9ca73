"""Harness tasks of an agent, and their rows."""

from uuid import uuid4

from tests.drivers.http.servers import Conn
from treadle.client import HarnessClient, TaskMessage

ME = "http://agent-1:9000"


def put(sql: Conn, payload: str = "{}") -> str:
    query = "select id::text from treadle.enqueue_harness_task(%s, %s::jsonb)"
    row = sql.execute(query, (ME, payload)).fetchone()
    assert row is not None
    return str(row[0])


def expire(sql: Conn, task_id: str) -> None:
    query = "update treadle.tasks set lease_until = now() - interval '1 s' where id = %s"
    # In one transaction: a heartbeat in between would renew it.
    with sql.transaction():
        sql.execute(query, (task_id,))
        sql.execute("select treadle.requeue_harness_tasks()")


def rows(sql: Conn, query: str, *given: object) -> list[tuple[object, ...]]:
    return sql.execute(query.encode(), given).fetchall()


def fetched(client: HarnessClient) -> TaskMessage:
    task = client.next_task()
    assert task is not None
    return task


def decided(sql: Conn) -> str:
    """A task with a decision that the harness has taken, and not finished."""
    task_id, token = put(sql), uuid4()
    sql.execute("select treadle.claim_harness_task(%s, %s)", (ME, token))
    sql.execute("""select treadle.complete_harness_task(%s, %s, '{"do": 1}')""", (task_id, token))
    sql.execute("select treadle.take_actions(%s)", (uuid4(),))
    return task_id


def interrupted(sql: Conn) -> str:
    """An action whose harness has died."""
    task_id = decided(sql)
    query = "update treadle.harness_actions set lease_until = now() - interval '1 h'"
    sql.execute(f"{query} where task_id = %s".encode(), (task_id,))
    return task_id
