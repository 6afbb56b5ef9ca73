"""What people and other programs tell tasks: answers, events, another try, or the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from treadle.db.dead_letters import Decided, Decision, LetterCount
from treadle.errors import InvalidArgument
from treadle.handles import Handle
from treadle.jsontext import encode
from treadle.worker import current

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.gateway import Gateway


class Decisions:
    """The part of an application that answers what tasks wait for, and reviews what gave up."""

    async def answer(
        self, wait_id: UUID, value: Any, *, by: str | None = None, note: str | None = None
    ) -> str:
        """Answer a question: `answered`, `recorded` when more must agree, or `already`."""
        gateway = await _gateway(self)
        return await gateway.answer_wait(wait_id, encode(value, name="value"), by, note)

    async def emit(
        self,
        event: str,
        payload: Any = ...,
        *,
        key: str = "",
        dedup_key: str | None = None,
        by: str | None = None,
    ) -> int:
        """Tell every task that waits for this event; with a `dedup_key` it happens once."""
        gateway = await _gateway(self)
        text = encode({} if payload is ... else payload, name="payload")
        return await gateway.emit_event(
            event, text, key=key, dedup_key=dedup_key, actor=by, task_id=current.task_id.get()
        )

    async def fork(
        self, task: UUID | Handle, /, *, from_step: str, by: str | None = None, **changes: Any
    ) -> Handle:
        """A new task that keeps the steps before this one; `changes` are other arguments for it."""
        task_id = task.id if isinstance(task, Handle) else task
        gateway = await _gateway(self)
        made = await gateway.fork_task(task_id, from_step, {"spec": changes} if changes else {}, by)
        return Handle(cast("Treadle", self), made)

    async def resolve(
        self,
        tasks: Sequence[UUID | str | Handle],
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        delay: float | None = None,
        to: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> dict[UUID, Decided]:
        """Decide about dead letters: retry, cancel, modify_and_retry or escalate.

        `changes` are for modify_and_retry, `delay` in seconds is before a retry, and `to` is who
        is asked when it is escalated. What cannot be done says so and does not stop the others.
        The keys of the answer are UUIDs, also of ids that were given as text.
        """
        ids = [each.id if isinstance(each, Handle) else _id(each) for each in tasks]
        gateway = await _gateway(self)
        return await gateway.resolve_dead_letters(
            ids, Decision(resolution, changes or {}, by, note, delay, to)
        )

    async def resolve_where(
        self,
        filters: Mapping[str, Any],
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        delay: float | None = None,
        to: str | None = None,
        by: str | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> list[LetterCount]:
        """Decide about all dead letters that a filter finds, or with `dry_run` count them."""
        gateway = await _gateway(self)
        return await gateway.resolve_dead_where(
            filters, Decision(resolution, changes or {}, by, note, delay, to), dry_run=dry_run
        )


def _id(given: UUID | str) -> UUID:
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(
            f"{given!r} is no id of a task", hint="List them: treadle dead list", argument="tasks"
        ) from None


async def _gateway(app: Decisions) -> Gateway:
    return await cast("Treadle", app).gateway()
