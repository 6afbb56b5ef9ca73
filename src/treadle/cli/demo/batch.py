"""The tasks of `treadle demo`, their expected ends, and the checks."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.cli.demo import app
from treadle.db import demo
from treadle.db.calls import Record
from treadle.db.database import Database
from treadle.db.pool import Connection
from treadle.models import TERMINAL
from treadle.producer.handle import Handle
from treadle.producer.task import Task

QUEUE = "demo"
SOURCE = "treadle demo"
DELAY_S = 5
ROUNDS = 4
PAGES_PER_ROUND = 10
# Seconds that a summary takes; four in each round.
SECONDS = (1.2, 2.8, 1.8, 2.4)
DOCUMENTS = (
    "Moby Dick", "Emma", "Dracula", "Ulysses", "Middlemarch", "Walden", "Candide", "Persuasion",
    "Faust", "Germinal", "Nostromo", "Kim", "Ivanhoe", "Cranford", "Carmen", "Utopia",
)  # fmt: skip

REAPED = ("claim_expired", "heartbeat_timeout")


@dataclass
class Batch:
    """The tasks of one run."""

    ids: list[UUID] = field(default_factory=list)
    flaky: UUID | None = None
    hopeless: UUID | None = None
    scheduled: UUID | None = None
    charged: list[Handle] = field(default_factory=list)

    def add(self, handles: Iterable[Handle]) -> UUID:
        """Add new tasks, and return the id of the last."""
        for handle in handles:
            if handle.created:
                self.ids.append(handle.id)
        return self.ids[-1]

    async def read(self, db: Database) -> dict[UUID, Record]:
        """The current state of the tasks."""
        return {row["id"]: row for row in await demo.tasks(db, self.ids)}

    async def attempts(self, db: Database) -> dict[UUID, list[Record]]:
        """The attempts of each task, oldest first."""
        found: dict[UUID, list[Record]] = {task_id: [] for task_id in self.ids}
        for row in await demo.attempts(db, self.ids):
            found[row["task_id"]].append(row)
        return found


async def enqueue_all(conn: Connection, survivor: str) -> Batch:
    """Enqueue all tasks in one transaction.

    Tasks that fail by themselves are assigned to the surviving worker, so that the crash adds no
    attempt to them.
    """
    batch = Batch()
    failing = {"priority": 40, "assigned_agent": survivor}

    def titled(task: Task, title: str | None, **options: Any) -> Task:
        return task.using(queue=QUEUE, source=SOURCE, **{"title": title, **options})

    async with conn.transaction():
        for number in range(ROUNDS):
            pages = range(number * PAGES_PER_ROUND, (number + 1) * PAGES_PER_ROUND)
            thumbnails = titled(app.thumbnail, None)
            batch.add(await thumbnails.enqueue_many([{"page": page} for page in pages], conn=conn))
            for place, seconds in enumerate(SECONDS):
                document = DOCUMENTS[number * len(SECONDS) + place]
                summary = titled(app.summarise, document)
                batch.add([await summary.enqueue(conn=conn, document=document, seconds=seconds)])
        flaky = titled(app.publish, "release notes", **failing)
        batch.flaky = batch.add([await flaky.enqueue(conn=conn, channel="blog.example")])
        hopeless = titled(app.import_invoice, "invoice 0815", **failing)
        batch.hopeless = batch.add([await hopeless.enqueue(conn=conn, path="0815.csv")])
        digest = titled(app.send_digest, "digest", delay=DELAY_S, priority=10)
        batch.scheduled = batch.add([await digest.enqueue(conn=conn, to="team@example.org")])
        charge = titled(app.charge, "order 4711", key=f"demo-4711-{secrets.token_hex(4)}")
        for _ in range(2):
            batch.charged.append(await charge.enqueue(conn=conn, order=4711, cents=1999))
        batch.add(batch.charged)
    return batch


async def cancel_old_runs(db: Database) -> None:
    """Cancel the tasks that an earlier demo left behind."""
    for row in await demo.unfinished(db, QUEUE, SOURCE):
        if row["status"] == "dead_lettered":
            await db.tasks.retry(
                row["id"], "cancel", reviewer=SOURCE, note="a new demo was started"
            )
        else:
            await db.tasks.cancel([row["id"]], "a new demo was started", SOURCE)
    # The failures of several demos would open the breaker.
    for row in await db.breakers.list():
        if row["type"] in app.app.registry.names():
            await db.breakers.reset(row["type"], SOURCE)


def held_by(tasks: dict[UUID, Record], agent: str) -> list[Record]:
    """The tasks that an agent holds."""
    return [row for row in tasks.values() if row["agent_id"] == agent]


def is_busy(tasks: dict[UUID, Record], agent: str) -> bool:
    """Whether an agent runs at least two summaries that are far from their end."""
    busy = [
        row
        for row in held_by(tasks, agent)
        if row["type"] == "summarise"
        and row["status"] == "running"
        and row["spec"]["seconds"] - row["held_s"] > 0.7
    ]
    return len(busy) >= 2


def title_of(row: Record) -> str:
    """The title of a task, or its page."""
    return str(row["title"] or f"page {row['spec'].get('page')}")


def all_ended(tasks: dict[UUID, Record]) -> bool:
    return all(row["status"] in TERMINAL for row in tasks.values())


def recovered(attempts: list[Record]) -> bool:
    """Whether the reaper took the task back from a worker."""
    return any(attempt["reason"] in REAPED for attempt in attempts)


def retries(attempts: list[Record]) -> int:
    """The number of failed attempts that were retried."""
    return sum(attempt["class"] == "error" for attempt in attempts[:-1])


def problems(
    batch: Batch,
    tasks: dict[UUID, Record],
    attempts: dict[UUID, list[Record]],
    *,
    lost: list[UUID],
    survivor: str,
) -> list[str]:
    """The checks that failed."""
    found = []
    for task_id, row in tasks.items():
        expected = "dead_lettered" if task_id == batch.hopeless else "completed"
        if row["status"] != expected:
            found.append(f"{row['type']} {title_of(row)} is {row['status']}, not {expected}")
    if not lost:
        found.append("the killed worker held no task")
    for task_id in lost:
        title = title_of(tasks[task_id])
        if not recovered(attempts[task_id]):
            found.append(f"{title} was lost with its worker and not taken back by the reaper")
        if tasks[task_id]["completed_by"] != survivor:
            found.append(f"{title} was completed by {tasks[task_id]['completed_by']}")
    if batch.flaky is None or retries(attempts[batch.flaky]) != 1:
        found.append("publish did not fail exactly once before it succeeded")
    if batch.hopeless is None or len(attempts[batch.hopeless]) != 3:
        found.append("import_invoice did not have three attempts")
    first, second = batch.charged
    if second.created or first.id != second.id:
        found.append("the second charge with the same key created a second task")
    if batch.scheduled is not None:
        [*_, last] = attempts[batch.scheduled] or [{"claimed_at": None}]
        due = tasks[batch.scheduled]["run_at"]
        if last["claimed_at"] is None or last["claimed_at"] < due:
            found.append("send_digest ran before it was due")
    return found
