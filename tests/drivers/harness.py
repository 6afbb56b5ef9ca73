"""The SQL calls of a harness and of its agents."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record

ME = "http://agent-1:9000"
OTHER = "http://agent-2:9000"
HOUR = timedelta(hours=1)


def put(driver: Driver, payload: Record | None = None, url: str = ME, **given: Any) -> UUID:
    """Store a task for an agent."""
    more = "".join(f", p_{name} => %s" for name in given)
    query = f"select id from treadle.enqueue_harness_task(%s, %s{more})"
    found: UUID = driver.value(query, url, Jsonb(payload or {}), *given.values())
    return found


def fetch(driver: Driver, url: str = ME, token: UUID | None = None) -> Record | None:
    """Claim the next task of an agent; its record has the token too."""
    token = token or uuid4()
    found = driver.records("select * from treadle.claim_harness_task(%s, %s)", url, token)
    return {**found[0], "token": token} if found else None


def fetched(driver: Driver, url: str = ME, **options: Any) -> Record:
    task = fetch(driver, url, **options)
    assert task is not None
    return task


def decide(driver: Driver, task: Record, decision: Record | None = None) -> str:
    query = "select treadle.complete_harness_task(%s, %s, %s)"
    return str(driver.value(query, task["id"], task["token"], Jsonb(decision or {"do": 1})))


def beat(driver: Driver, task: Record) -> object:
    """Until when the claim lasts now; None if it was lost."""
    query = "select treadle.heartbeat_harness_task(%s, %s)"
    return driver.value(query, task["id"], task["token"])


def requeue(driver: Driver) -> list[tuple[UUID, str, str]]:
    query = "select id, reason, status from treadle.requeue_harness_tasks()"
    return [(row[0], row[1], row[2]) for row in driver.rows(query)]


def expire(driver: Driver, task: Record) -> str:
    """Expire a claim and requeue the task; return its state."""
    driver.age_claim(task["id"], HOUR)
    [(task_id, reason, status)] = requeue(driver)
    assert (task_id, reason) == (task["id"], "heartbeat_timeout")
    return status


def decided(driver: Driver, decision: Record | None = None) -> UUID:
    """A completed task whose action has not run."""
    put(driver)
    task = fetched(driver)
    assert decide(driver, task, decision) == "completed"
    found: UUID = task["id"]
    return found


def take(
    driver: Driver, token: UUID | None = None, limit: int = 10, *, redeliver: bool = False
) -> list[Record]:
    """Take actions; each record has the token too."""
    token = token or uuid4()
    query = "select * from treadle.take_actions(%s, %s, p_redeliver => %s)"
    found = driver.records(query, token, limit, redeliver)
    return [{**each, "token": token} for each in found]


def taken(driver: Driver, *, redeliver: bool = False) -> Record:
    [action] = take(driver, redeliver=redeliver)
    return action


def finish(
    driver: Driver, action: Record, outcome: str = "done", error: str | None = None, tries: int = 3
) -> str:
    query = "select treadle.finish_action(%s, %s, %s, %s, %s)"
    return str(driver.value(query, action["id"], action["token"], outcome, error, tries))


def shown(driver: Driver, task_id: UUID) -> Record:
    [row] = driver.records("select * from treadle.harness_tasks where task_id = %s", task_id)
    return row


def status(driver: Driver, task_id: UUID) -> tuple[str, str | None]:
    """The states of a task and its action."""
    row = shown(driver, task_id)
    return row["status"], row["action"]


def age_actions(driver: Driver, by: timedelta = HOUR) -> None:
    """Expire the leases and pauses of actions."""
    driver.rows(
        "update treadle.harness_actions set lease_until = lease_until - %s,"
        " next_try_at = next_try_at - %s",
        by,
        by,
    )


def interrupted(driver: Driver) -> list[UUID]:
    return [row[0] for row in driver.rows("select * from treadle.interrupt_actions()")]


def nudges(driver: Driver, *skip: str) -> list[tuple[str, UUID, bool]]:
    query = "select agent_url, task_id, allow_private from treadle.take_nudges(100, %s::text[])"
    return [(row[0], row[1], row[2]) for row in driver.rows(query, list(skip))]


def allow(driver: Driver, url: str = ME, *, private: bool = False) -> None:
    driver.rows("select treadle.allow_nudges(%s, true, %s)", url, private)
