"""Dead letters: what to read before a decision, and the decisions."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.errors import InvalidArgument, TaskNotFound
from treadle.json import encode

BATCH = 1000


@dataclass(frozen=True)
class Decision:
    """What is decided: retry, cancel, modify_and_retry or escalate; by whom and why."""

    resolution: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None
    note: str | None = None
    delay_s: float | None = None
    to: str | None = None

    def parameters(self) -> tuple[object, ...]:
        """As the SQL functions take them."""
        changes = RawJson(encode(dict(self.changes), name="changes"))
        return self.resolution, changes, self.by, self.note, self.delay_s, self.to


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of one dead letter: retried, cancelled, escalated, already, refused, unknown."""

    id: UUID
    task_id: UUID | None
    letter_id: UUID | None
    verdict: str
    status: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class LetterCount:
    """So many dead letters of one kind, and what became of them."""

    queue: str
    type: str
    failure_class: str
    fingerprint: str
    verdict: str
    why: str | None
    letters: int


class ReviewCalls(Calls):
    """Decisions about dead letters, by id or by a filter."""

    async def resolve_dead_letters(
        self, ids: Sequence[UUID], decision: Decision
    ) -> dict[UUID, Decided]:
        """Decide about letters; one that cannot be decided about does not stop the others."""
        rows = await self._call(
            """
            select id, task_id, letter_id, verdict, status, why
            from treadle.resolve_dead_letters(%b, %b, %b, %b, %b, %b::float8, %b)
            """,
            list(ids),
            *decision.parameters(),
        )
        return {row[0]: Decided(*row) for row in rows}

    async def resolve_dead_where(
        self,
        filters: Mapping[str, Any],
        decision: Decision,
        *,
        dry_run: bool = False,
        batch: int = BATCH,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> list[LetterCount]:
        """Decide about all that a filter finds, so many in each transaction, or count them.

        `on_batch` hears after each transaction how many were looked at so far.
        """
        counts: Counter[tuple[Any, ...]] = Counter()
        after: UUID | None = None
        while True:
            rows = await self._call(
                """
                select queue, type, class, fingerprint, verdict, why, letters, last_task
                from treadle.resolve_dead_where(
                  %b, %b, %b, %b, %b, %b::float8, %b, %b, %b::integer, %b::uuid
                )
                """,
                RawJson(encode(filters, name="filter")),
                *decision.parameters(),
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


class ReviewViews(ABC):
    """What people read of dead letters; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run a select and return its rows by name."""

    async def dead_groups(self) -> list[dict[str, Any]]:
        """The groups of open letters: those escalated first, then the largest."""
        return await self.rows(
            """
            select * from treadle.dead_letter_groups
            order by escalated > 0 desc, letters desc, last_at desc
            """
        )

    async def dead_letters(
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
        """Dead letters, those escalated first, then the newest; reviewed ones when asked for."""
        return await self.rows(
            """
            select * from treadle.dead_letter_review
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

    async def dead_history(self, letter_id: UUID) -> list[dict[str, Any]]:
        """Every attempt that led to a letter, oldest first."""
        return await self.rows(
            """
            select * from treadle.dead_letter_history
            where letter_id = %(id)s order by ended_at, attempt
            """,
            {"id": letter_id},
        )

    async def decisions(
        self, *, task_id: UUID | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """What was decided, the newest first; of one task, or of all."""
        return await self.rows(
            """
            select * from treadle.dead_letter_log
            where %(id)s::uuid is null or task_id = %(id)s
            order by id desc
            limit %(limit)s
            """,
            {"id": task_id, "limit": limit},
        )

    async def find_letter(self, text: str) -> UUID:
        """The id of a letter or of its task, from its full form or a unique ending."""
        try:
            return UUID(text)
        except ValueError:
            pass
        if len(text) < 6 or not set(text.lower()) <= set("0123456789abcdef-"):
            raise InvalidArgument(
                f"{text!r} is not a task id",
                hint="Give the whole id, or at least its last 6 characters.",
                argument="task_id",
            )
        found = await self.rows(
            """
            select distinct id from (
              select task_id as id from treadle.dead_letter_review
              union all
              select id from treadle.dead_letter_review
            ) as known
            where id::text like %(end)s
            limit 2
            """,
            {"end": f"%{text.lower()}"},
        )
        if not found:
            raise TaskNotFound(
                f"no dead letter has an id that ends in {text}",
                hint="List them: treadle dead list",
            )
        if len(found) > 1:
            raise InvalidArgument(f"more than one id ends in {text}", hint="Give more of it.")
        letter: UUID = found[0]["id"]
        return letter
