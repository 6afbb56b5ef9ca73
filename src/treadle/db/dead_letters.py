"""Dead letters: what to read before a decision, and the decisions; reached as `db.dead_letters`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict, Unpack
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.errors import (
    InvalidArgument,
    TaskNotFound,
)
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


class DecisionTerms(TypedDict, total=False):
    """What goes with a resolution.

    `changes` are for modify_and_retry, `delay` in seconds is before a retry, and `to` is who is
    asked when it is escalated.
    """

    changes: Mapping[str, Any] | None
    delay: float | None
    to: str | None
    by: str | None
    note: str | None


class HasId(Protocol):
    """A task, for example the handle of one."""

    id: UUID


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

        What cannot be done says so and does not stop the others. The keys of the answer are UUIDs,
        also of ids that were given as text.
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
        """Decide about all that a filter finds, so many in each transaction, or count them.

        `on_batch` hears after each transaction how many were looked at so far.
        """
        parameters = _decision(decision, terms).parameters()
        counts: Counter[tuple[Any, ...]] = Counter()
        after: UUID | None = None
        while True:
            rows = await self._calls.call(
                """
                select queue, type, class, fingerprint, verdict, why, letters, last_task
                from treadle.resolve_dead_where(
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
        """The groups of open letters: those escalated first, then the largest."""
        return await self._calls.rows(
            """
            select * from treadle.dead_letter_groups
            order by escalated > 0 desc, letters desc, last_at desc
            """
        )

    async def history(self, letter_id: UUID) -> list[dict[str, Any]]:
        """Every attempt that led to a letter, oldest first."""
        return await self._calls.rows(
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
        return await self._calls.rows(
            """
            select * from treadle.dead_letter_log
            where %(id)s::uuid is null or task_id = %(id)s
            order by id desc
            limit %(limit)s
            """,
            {"id": task_id, "limit": limit},
        )

    async def find(self, text: str) -> UUID:
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
        found = await self._calls.rows(
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
        """Dead letters, those escalated first, then the newest; reviewed ones when asked for."""
        return await self._calls.rows(
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
            f"{given!r} is no id of a task", hint="List them: treadle dead list", argument="tasks"
        ) from None
