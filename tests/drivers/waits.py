"""Open, answer and expire waits, also many times at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Barrier
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from tests.drivers.races import together
from treadle.models import Claim, Promoted

Call = Callable[[Driver, int], Any]

APPROVAL: Record = {"question": "Ship it?", "approvers": 1}


def claimed(driver: Driver, agent: str = "a", **options: Any) -> Claim:
    """A new task that is running."""
    task_id = driver.enqueue(**options)
    claim = driver.claim_one(agent)
    assert claim.id == task_id
    return claim


def open_wait(driver: Driver, claim: Claim, wait: object, name: str = "ask") -> Record:
    query = "select * from treadle.open_wait(%s, %s, %s, %s)"
    [row] = driver.records(query, claim.id, claim.token, name, Jsonb(wait))
    return row


def ask(driver: Driver, claim: Claim, name: str = "ask", **wait: Any) -> UUID:
    """Open a question without answers."""
    row = open_wait(driver, claim, {"question": "Ship it?", **wait}, name)
    assert (row["status"], row["answer"]) == ("open", None)
    wait_id: UUID = row["wait_id"]
    return wait_id


def expect(driver: Driver, claim: Claim, event: str, name: str = "ask", **wait: Any) -> Record:
    """Begin to wait for an event."""
    return open_wait(driver, claim, {"event": event, **wait}, name)


def suspend(driver: Driver, claim: Claim, *waits: UUID) -> str:
    query = "select treadle.suspend_task(%s, %s, p_waits => %s::uuid[])"
    return str(driver.value(query, claim.id, claim.token, list(waits)))


def blocked(driver: Driver, wait: object = APPROVAL, **options: Any) -> tuple[Claim, UUID]:
    """A task that gave up its claim until it has an answer, and its wait."""
    claim = claimed(driver, **options)
    row = open_wait(driver, claim, wait)
    assert suspend(driver, claim, row["wait_id"]) == "blocked"
    return claim, row["wait_id"]


def answer(
    driver: Driver, wait_id: UUID, value: object, actor: str = "alice", note: str | None = None
) -> str:
    query = "select treadle.answer_wait(%s, %s, %s, %s)"
    return str(driver.value(query, wait_id, Jsonb(value), actor, note))


def emit(driver: Driver, event: str, payload: object = None, key: str = "", **more: Any) -> int:
    given = "".join(f", p_{name} => %s" for name in more)
    query = f"select treadle.emit_event(%s, %s, %s{given})"
    return int(driver.value(query, event, Jsonb(payload), key, *more.values()))


def expire_waits(driver: Driver, limit: int = 100, skip: Sequence[UUID] = ()) -> list[Promoted]:
    query = "select * from treadle.expire_waits(%s, %s::uuid[])"
    return [Promoted(*row) for row in driver.rows(query, limit, list(skip))]


def wait_of(driver: Driver, wait_id: UUID) -> Record:
    [row] = driver.records("select * from treadle.waits where id = %s", wait_id)
    return row


def answers_of(driver: Driver, task_id: UUID) -> dict[str, Any]:
    """What the task will find answered when it runs again."""
    query = "select name, output from treadle.steps where task_id = %s and kind = 'wait'"
    return dict(driver.rows(query, task_id))


def kinds(driver: Driver, task_id: UUID) -> list[str]:
    """What was written down about the waits of a task."""
    return [each["kind"] for each in driver.events(task_id) if each["kind"].startswith("wait.")]


def rounds(driver: Driver, count: int, *calls: Call) -> list[tuple[Any, ...]]:
    """Make these calls at the same moment, so many times; what each said, by round.

    What a call is refused with is its answer.
    """
    gate = Barrier(len(calls))

    def run(session: Driver, number: int) -> list[Any]:
        said: list[Any] = []
        for at in range(count):
            gate.wait(timeout=60)
            try:
                said.append(calls[number](session, at))
            except psycopg.Error as error:
                said.append(error.sqlstate)
        return said

    return list(zip(*together(driver, len(calls), run), strict=True))
