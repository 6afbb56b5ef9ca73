"""The push queue through its SQL functions: submit, list, and take the next entry."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle.models import Claim

SUBMIT = "select * from treadle.submit_push(%s, %s, %s, %s, %s)"


def submit(
    driver: Driver,
    prompt: object = "hello",
    *,
    source: str = "cli",
    source_job: str | None = None,
    size: int | None = 50,
    attempts: int | None = 3,
    **fields: Any,
) -> Record:
    """Queue a prompt; return the response to the submitter."""
    request = Jsonb({"prompt": prompt, **fields})
    [row] = driver.records(SUBMIT, request, source, source_job, size, attempts)
    return row


def offer(driver: Driver, **options: Any) -> Record | None:
    """The same; None when the queue is full."""
    try:
        return submit(driver, **options)
    except psycopg.DatabaseError as error:
        if error.sqlstate != "TR105":
            raise
        return None


def line(driver: Driver) -> list[str]:
    """The waiting prompts in order; positions have no gaps."""
    rows = driver.rows(
        "select position, prompt from treadle.push_queue where position is not null order by 1"
    )
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    return [row[1] for row in rows]


def entry(driver: Driver, task_id: UUID) -> Record:
    [row] = driver.records("select * from treadle.push_queue where id = %s", task_id)
    return row


def take(driver: Driver, *, start: bool = True) -> Claim:
    """The next entry, as a dispatcher claims it."""
    driver.agent("sender", queues=["push"])
    return driver.claim_one("sender", queues=["push"], start=start)


def note(driver: Driver, claim: Claim, error: str | None = None) -> None:
    """A submission to an agent; with an error one that has ended."""
    holder = None if error else uuid4()
    driver.rows(
        """
        insert into treadle.dispatches (
          task_id, claim_token, number, attempt, agent_id, agent_url, holder, error, lease_until,
          ended_at, outcome
        )
        select
          given.*,
          case when given.error is null then treadle.clock() + interval '1 min' end,
          case when given.error is not null then treadle.clock() end,
          case when given.error is not null then 'busy' end
        from (
          values (%s::uuid, %s::uuid, 1, 1, 'sender', 'https://agent', %s::uuid, %s::text)
        ) as given (task_id, claim_token, number, attempt, agent_id, agent_url, holder, error)
        """,
        *(claim.id, claim.token, holder, error),
    )
