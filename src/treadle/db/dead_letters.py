"""Dead letters and the decisions about them; reached as `db.dead_letters`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict, Unpack
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.errors import (
    InvalidArgument,
    TaskNotFound,
)
from treadle.json import encode

BATCH = 1000


@dataclass(frozen=True)
class Decision:
    """A decision: retry, cancel, modify_and_retry or escalate, with its author and note."""

    resolution: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None
    note: str | None = None
    delay_s: float | None = None
    to: str | None = None

    def parameters(self) -> tuple[object, ...]:
        """Return the parameters of the SQL functions."""
        changes = RawJson(encode(dict(self.changes), name="changes"))
        return self.resolution, changes, self.by, self.note, self.delay_s, self.to


class DecisionTerms(TypedDict, total=False):
    """The options of a decision.

    `changes` are for modify_and_retry, `delay` is the time before a retry in seconds, and `to` is
    the person to escalate to.
    """

    changes: Mapping[str, Any] | None
    delay: float | None
    to: str | None
    by: str | None
    note: str | None


class HasId(Protocol):
    """An object with a task id, such as a handle."""

    id: UUID


@dataclass(frozen=True, slots=True)
class Decided:
    """The verdict on one letter: retried, cancelled, escalated, already, refused or unknown."""

    id: UUID
    task_id: UUID | None
    letter_id: UUID | None
    verdict: str
    status: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class LetterCount:
    """The number of dead letters with the same properties and verdict."""

    queue: str
    type: str
    failure_class: str
    fingerprint: str
    verdict: str
    why: str | None
    letters: int


class DeadLetters:
    """Read dead letters and decide about them, by id or by a filter."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def resolve(
        self,
        tasks: Sequence[UUID | str | HasId],
        decision: Decision | str = "retry",
        **terms: Unpack[DecisionTerms],
    ) -> dict[UUID, Decided]:
        """Decide about dead letters: retry, cancel, modify_and_retry or escalate.

        A letter whose decision is refused has that verdict and does not stop the others. The keys
        of the result are UUIDs.
        """
        rows = await self._calls.call(
            """
            select id, task_id, letter_id, verdict, status, why
            from treadle.resolve_dead_letters(%b, %b, %b, %b, %b, %b::float8, %b)
            """,
            [_id(task) for task in tasks],
            *_decision(decision, terms).parameters(),
        )
        return {row[0]: Decided(*row) for row in rows}

    async def resolve_where(
        self,
        filters: Mapping[str, Any],
        decision: Decision | str = "retry",
        *,
        dry_run: bool = False,
        batch: int = BATCH,
        on_batch: Callable[[int], None] = lambda _: None,
        **terms: Unpack[DecisionTerms],
    ) -> list[LetterCount]:
        """Decide about all letters that match a filter, in batches, or count them.

        `on_batch` is called after each transaction with the number of letters so far.
        """
        parameters = _decision(decision, terms).parameters()
        counts: Counter[tuple[Any, ...]] = Counter()
        after: UUID | None = None
        while True:
            rows = await self._calls.call(
                """
                select queue, type, class, fingerprint, verdict, why, letters, last_task
                from treadle.resolve_dead_letters_where(
                  %b, %b, %b, %b, %b, %b::float8, %b, %b, %b::integer, %b::uuid
                )
                """,
                RawJson(encode(filters, name="filter")),
                *parameters,
                dry_run,
                batch,
                after,
            )
            for *kind, letters, _ in rows:
                if kind[4] != "left":
                    counts[tuple(kind)] += letters
            on_batch(counts.total())
            if all(row[4] != "left" for row in rows):
                return [LetterCount(*(*kind, letters)) for kind, letters in counts.items()]
            after = max(row[7] for row in rows if row[7] is not None)

    async def groups(self) -> list[dict[str, Any]]:
        """List the groups of open letters: escalated ones first, then the largest."""
        return await self._calls.rows(
            """
            select * from treadle.dead_letter_groups
            order by escalated > 0 desc, letters desc, last_at desc
            """
        )

    async def history(self, letter_id: UUID) -> list[dict[str, Any]]:
        """List the attempts that led to a letter, oldest first."""
        return await self._calls.rows(
            """
            select * from treadle.dead_letter_attempts
            where letter_id = %(id)s order by ended_at, attempt
            """,
            {"id": letter_id},
        )

    async def decisions(
        self, *, task_id: UUID | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """List the decisions about one task or all, newest first."""
        return await self._calls.rows(
            """
            select * from treadle.dead_letter_decision_log
            where %(id)s::uuid is null or task_id = %(id)s
            order by id desc
            limit %(limit)s
            """,
            {"id": task_id, "limit": limit},
        )

    async def find(self, text: str) -> UUID:
        """Find the id of a letter or of its task by the id, or by a unique ending."""
        query = """
            select distinct id from (
              select task_id as id from treadle.dead_letter_details
              union all
              select id from treadle.dead_letter_details
            ) as known
            where id::text like %(end)s
            limit 2
        """
        missing = TaskNotFound(
            f"no dead letter has an id that ends in {text}",
            hint="List them: treadle dead-letters list",
        )
        return await self._calls.find(text, query, "task", missing)

    async def page(
        self,
        reach: Reach,
        *,
        queue: str | None,
        type: str | None,
        failure_class: str | None,
        fingerprint: str | None,
        poison: bool | None,
        escalated: bool | None,
        before: datetime | None,
        reviewed: bool,
        after: UUID | None,
        limit: int,
    ) -> list[Record]:
        """Visible dead letters that match, the newest first."""
        return await self._calls.page(
            "dead_letter_details",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={
                "queue = {}": queue,
                "type = {}": type,
                "class = {}": failure_class,
                "fingerprint = {}": fingerprint,
                "poison_pill = {}": poison,
                "(escalated_at is not null) = {}": escalated,
                "dead_lettered_at < {}": before,
                "reviewed = {}": None if reviewed else False,
            },
            reach=reach,
        )

    async def group_page(self, reach: Reach, *, after: str | None, limit: int) -> list[Record]:
        """Open dead letters by what went wrong; groups without letters of other queues."""
        return await self._calls.page(
            "dead_letter_groups",
            key="fingerprint",
            after=after,
            limit=limit,
            where={"queues <@ {}": None if reach.queues is None else [*reach.queues]},
        )

    async def decision_page(
        self, reach: Reach, *, task_id: UUID | None, after: int | None, limit: int
    ) -> list[Record]:
        """Decisions about visible dead letters, the newest first."""
        return await self._calls.page(
            "dead_letter_decision_log",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={"task_id = {}": task_id},
            reach=reach,
        )

    async def list(
        self,
        *,
        reviewed: bool = False,
        queue: str | None = None,
        type: str | None = None,
        failure_class: str | None = None,
        fingerprint: str | None = None,
        poison: bool | None = None,
        escalated: bool | None = None,
        before: datetime | None = None,
        task_id: UUID | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """List dead letters: escalated ones first, then the newest; `reviewed` adds closed ones."""
        found = await self._calls.rows(
            """
            select * from treadle.dead_letter_details
            where
              (%(reviewed)s or not reviewed)
              and (%(queue)s::text is null or queue = %(queue)s)
              and (%(type)s::text is null or type = %(type)s)
              and (%(class)s::text is null or class = %(class)s)
              and (%(fingerprint)s::text is null or fingerprint = %(fingerprint)s)
              and (%(poison)s::boolean is null or poison_pill = %(poison)s)
              and (%(escalated)s::boolean is null or (escalated_at is not null) = %(escalated)s)
              and (%(before)s::timestamptz is null or dead_lettered_at < %(before)s)
              and (%(task_id)s::uuid is null or %(task_id)s in (task_id, id))
            order by not reviewed and escalated_at is not null desc, dead_lettered_at desc
            limit %(limit)s
            """,
            {
                "reviewed": reviewed,
                "queue": queue,
                "type": type,
                "class": failure_class,
                "fingerprint": fingerprint,
                "poison": poison,
                "escalated": escalated,
                "before": before,
                "task_id": task_id,
                "limit": limit,
            },
        )
        names = {"queue": queue, "type": type, "failure_class": failure_class}
        given = {name: value for name, value in names.items() if value is not None}
        if given and not found:
            # Raises if a name is unknown: an empty list would hide the typing error.
            await self._calls.call("select treadle.find_tasks(%b, 1)", RawJson(encode(given)))
        return found


def _decision(decision: Decision | str, terms: DecisionTerms) -> Decision:
    if isinstance(decision, Decision):
        return decision
    return Decision(
        decision,
        terms.get("changes") or {},
        terms.get("by"),
        terms.get("note"),
        terms.get("delay"),
        terms.get("to"),
    )


def _id(given: UUID | str | HasId) -> UUID:
    if isinstance(given, UUID):
        return given
    try:
        return UUID(given) if isinstance(given, str) else given.id
    except (ValueError, AttributeError):
        raise InvalidArgument(
            f"{given!r} is not a valid task id",
            hint="List them: treadle dead-letters list",
            argument="tasks",
        ) from None
