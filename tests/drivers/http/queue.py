"""Submit to the push queue over HTTP, and act as its dispatcher in the database."""

from typing import Any
from uuid import UUID, uuid4

import httpx2

from tests.drivers.http.servers import Conn

Body = dict[str, Any]
AGENT_URL = "https://localhost:9000"


def submit(http: httpx2.Client, prompt: str = "test", **fields: Any) -> Body:
    """Queue a prompt; the answer."""
    answer = http.post("/api/queue/task", json={"prompt": prompt, **fields})
    assert answer.status_code == 201, answer.text
    body: Body = answer.json()
    return body


def entry(http: httpx2.Client, queue_id: str) -> Body:
    answer = http.get(f"/api/queue/{queue_id}")
    assert answer.status_code == 200, answer.text
    body: Body = answer.json()
    return body


def listing(http: httpx2.Client) -> Body:
    answer = http.get("/api/queue")
    assert answer.status_code == 200, answer.text
    body: Body = answer.json()
    return body


def claim(sql: Conn, *, start: bool = False) -> tuple[UUID, UUID] | None:
    """The next entry as a dispatcher takes it: its id and the token; None when nothing waits."""
    token = uuid4()
    sql.execute("select treadle.register_agent('sender', p_queues => '{push}')")
    found = sql.execute(
        "select id from treadle.claim_tasks('sender', '{push}', null, 1, %s, %s)", (start, token)
    ).fetchone()
    return (found[0], token) if found else None


def dispatch(sql: Conn) -> tuple[UUID, UUID]:
    """The next entry, taken by the agent at AGENT_URL as its task-xyz789."""
    claimed = claim(sql, start=True)
    assert claimed
    sql.execute(
        """
        insert into treadle.dispatches (
          task_id, claim_token, number, attempt, agent_id, agent_url, agent_task_id, accepted_at,
          holder, lease_until
        )
        values (
          %s, %s, 1, 1, 'sender', %s, 'task-xyz789', clock_timestamp(), gen_random_uuid(),
          clock_timestamp() + interval '1 minute'
        )
        """,
        (*claimed, AGENT_URL),
    )
    return claimed
