"""Submissions to agents through their SQL functions: dispatch, accept, end, renew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record

URL = "https://agent.example.org"


@dataclass
class Sent:
    """A submission and its follower."""

    task_id: UUID
    token: UUID
    holder: UUID
    number: int
    attempt: int

    @property
    def args(self) -> tuple[UUID, UUID, UUID]:
        return self.task_id, self.token, self.holder


def agent(driver: Driver, *names: str, private: bool = False) -> None:
    for name in names:
        driver.rows("select treadle.define_push_agent(%s, %s, %s)", name, URL, private)


def dispatch(
    driver: Driver, name: str = "a1", holder: UUID | None = None, token: UUID | None = None
) -> Sent | None:
    """The next entry for an agent; None when there is none for it."""
    holder, token = holder or uuid4(), token or uuid4()
    rows = driver.records("select * from treadle.dispatch_task(%s, %s, %s)", name, token, holder)
    if not rows:
        return None
    [row] = rows
    return Sent(row["task_id"], row["claim_token"], holder, row["number"], row["attempt"])


def dispatched(driver: Driver, name: str = "a1", holder: UUID | None = None) -> Sent:
    sent = dispatch(driver, name, holder)
    assert sent is not None
    return sent


def accept(driver: Driver, sent: Sent, task: str = "t-1") -> str:
    query = "select treadle.accept_dispatch(%s, %s, %s, %s)"
    return str(driver.value(query, *sent.args, task))


def end(
    driver: Driver, sent: Sent, outcome: str, error: str | None = None, output: object = None
) -> str | None:
    query = "select treadle.end_dispatch(%s, %s, %s, %s, %s, %s)"
    found: str | None = driver.value(query, *sent.args, outcome, error, Jsonb(output))
    return found


def give_up(driver: Driver, sent: Sent, unsure_s: float = 60, silent_s: float = 600) -> str | None:
    query = "select treadle.expire_dispatch(%s, %s, %s, 'no answer', %s, %s)"
    found: str | None = driver.value(query, *sent.args, unsure_s, silent_s)
    return found


def renew(driver: Driver, holder: UUID, *heard: UUID) -> list[tuple[UUID, str]]:
    """What a holder follows: claims, and whether they hold."""
    query = "select claim_token, verdict from treadle.renew_dispatches(%s, %s::uuid[])"
    return [(row[0], row[1]) for row in driver.rows(query, holder, list(heard))]


def take(driver: Driver, holder: UUID) -> list[UUID]:
    query = "select claim_token from treadle.take_over_dispatches(%s)"
    return [row[0] for row in driver.rows(query, holder)]


def row(driver: Driver, sent: Sent) -> Record:
    query = "select * from treadle.dispatches where task_id = %s and claim_token = %s"
    [found] = driver.records(query, sent.task_id, sent.token)
    return found


def age(driver: Driver, sent: Sent, seconds: float, **columns: Any) -> None:
    """Move the last renewal and response of a submission into the past."""
    driver.rows(
        """
        update treadle.dispatches
        set
          lease_until = lease_until - make_interval(secs => %s),
          heard_at = heard_at - make_interval(secs => %s)
        where claim_token = %s
        """,
        *(seconds, seconds, sent.token),
    )
