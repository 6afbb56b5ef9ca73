"""What `treadle demo` enqueues, what should become of it, and whether it did."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.cli.demo import app
from treadle.db.calls import Record
from treadle.db.connection import Connection
from treadle.db.database import Database
from treadle.errors import Unavailable
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

READ = """
    select
      id, type, title, status, attempt, max_attempts, agent_id, claimed_at, run_at, spec,
      completed_by, failure_class, failure_reason,
      extract(epoch from clock_timestamp() - claimed_at)::float8 as held_s
    from treadle.task_details
    where id = any (%(ids)s)
    order by id
"""
ATTEMPTS = """
    select task_id, attempt, agent_id, claimed_at, ended_at, outcome, class, reason, error
    from treadle.dispatch_log
    where task_id = any (%(ids)s)
    order by task_id, ended_at
"""
OLD = """
    select id, status from treadle.task_details
    where source = %(source)s and queue = %(queue)s and status not in ('completed', 'cancelled')
"""
SILENT = ("claim_expired", "heartbeat_timeout")


@dataclass
class Batch:
    """The tasks of one run."""

    ids: list[UUID] = field(default_factory=list)
    flaky: UUID | None = None
    hopeless: UUID | None = None
    scheduled: UUID | None = None
    charged: list[Handle] = field(default_factory=list)

    def add(self, handles: Iterable[Handle]) -> UUID:
        """Remember them; returns the last."""
        for handle in handles:
            if handle.created:
                self.ids.append(handle.id)
        return self.ids[-1]

    async def read(self, db: Database) -> dict[UUID, Record]:
        """The tasks as they are now."""
        return {row["id"]: row for row in await db.calls.rows(READ, {"ids": self.ids})}

    async def attempts(self, db: Database) -> dict[UUID, list[Record]]:
        """Every attempt of every task, oldest first."""
        found: dict[UUID, list[Record]] = {task_id: [] for task_id in self.ids}
        for row in await db.calls.rows(ATTEMPTS, {"ids": self.ids}):
            found[row["task_id"]].append(row)
        return found


async def enqueue_all(conn: Connection, survivor: str) -> Batch:
    """Enqueue the whole batch in one transaction: all of it is there, or nothing.

    What fails by itself is for the worker that survives: the crash is none of its attempts.
    """
    batch = Batch()
    by_itself = {"priority": 40, "assigned_agent": survivor}

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
        flaky = titled(app.publish, "release notes", **by_itself)
        batch.flaky = batch.add([await flaky.enqueue(conn=conn, channel="blog.example")])
        hopeless = titled(app.import_invoice, "invoice 0815", **by_itself)
        batch.hopeless = batch.add([await hopeless.enqueue(conn=conn, path="0815.csv")])
        digest = titled(app.send_digest, "digest", delay=DELAY_S, priority=10)
        batch.scheduled = batch.add([await digest.enqueue(conn=conn, to="team@example.org")])
        charge = titled(app.charge, "order 4711", key=f"demo-4711-{secrets.token_hex(4)}")
        for _ in range(2):
            batch.charged.append(await charge.enqueue(conn=conn, order=4711, cents=1999))
        batch.add(batch.charged)
    return batch


async def be_the_only_one(conn: Connection) -> None:
    """Two demos on one server would disturb each other; the lock ends with the connection."""
    cursor = await conn.execute(
        "select pg_try_advisory_lock(hashtextextended('treadle.demo', 0)) as free"
    )
    if await cursor.fetchone() != (True,):
        raise Unavailable("another demo is running on this server", hint="Wait until it has ended.")


async def forget_old_runs(db: Database) -> None:
    """What an earlier demo left behind is cancelled, through the same functions as ever."""
    for row in await db.calls.rows(OLD, {"source": SOURCE, "queue": QUEUE}):
        if row["status"] == "dead_lettered":
            await db.tasks.retry(row["id"], "cancel", reviewer=SOURCE, note="a new demo began")
        else:
            await db.tasks.cancel([row["id"]], "a new demo began", SOURCE)
    # What fails in every demo would be kept back after some of them.
    for row in await db.breakers.list():
        if row["type"] in app.app.registry.names():
            await db.breakers.reset(row["type"], SOURCE)


def lost_by(tasks: dict[UUID, Record], agent: str) -> list[Record]:
    """What an agent holds."""
    return [row for row in tasks.values() if row["agent_id"] == agent]


def good_to_kill(tasks: dict[UUID, Record], agent: str) -> bool:
    """Whether the agent is in the middle of two summaries that will take a while yet."""
    busy = [
        row
        for row in lost_by(tasks, agent)
        if row["type"] == "summarise"
        and row["status"] == "running"
        and row["spec"]["seconds"] - row["held_s"] > 0.7
    ]
    return len(busy) >= 2


def name_of(row: Record) -> str:
    """What people call a task."""
    return str(row["title"] or f"page {row['spec'].get('page')}")


def all_ended(tasks: dict[UUID, Record]) -> bool:
    return all(row["status"] in TERMINAL for row in tasks.values())


def recovered(attempts: list[Record]) -> bool:
    """Whether the reaper took the task back from somebody."""
    return any(attempt["reason"] in SILENT for attempt in attempts)


def retries(attempts: list[Record]) -> int:
    """How many attempts failed by themselves and were followed by another."""
    return sum(attempt["class"] == "error" for attempt in attempts[:-1])


def problems(
    batch: Batch,
    tasks: dict[UUID, Record],
    attempts: dict[UUID, list[Record]],
    *,
    lost: list[UUID],
    survivor: str,
) -> list[str]:
    """Everything that did not go as told; empty is good."""
    found = []
    for task_id, row in tasks.items():
        expected = "dead_lettered" if task_id == batch.hopeless else "completed"
        if row["status"] != expected:
            found.append(f"{row['type']} {name_of(row)} is {row['status']}, not {expected}")
    if not lost:
        found.append("the killed worker held no task")
    for task_id in lost:
        title = name_of(tasks[task_id])
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
        found.append("the second charge with the same key made a task of its own")
    if batch.scheduled is not None:
        [*_, last] = attempts[batch.scheduled] or [{"claimed_at": None}]
        due = tasks[batch.scheduled]["run_at"]
        if last["claimed_at"] is None or last["claimed_at"] < due:
            found.append("send_digest ran before its time")
    return found
