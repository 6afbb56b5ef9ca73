"""What people and other programs tell tasks: answers, events, another try from a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from treadle.handles import Handle
from treadle.jsontext import encode

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.gateway import Gateway


class Decisions:
    """The part of an application that answers what tasks wait for."""

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
        return await gateway.emit_event(event, text, key=key, dedup_key=dedup_key, actor=by)

    async def fork(
        self, task: UUID | Handle, /, *, from_step: str, by: str | None = None, **changes: Any
    ) -> Handle:
        """A new task that keeps the steps before this one; `changes` are other arguments for it."""
        task_id = task.id if isinstance(task, Handle) else task
        gateway = await _gateway(self)
        made = await gateway.fork_task(task_id, from_step, {"spec": changes} if changes else {}, by)
        return Handle(cast("Treadle", self), made)


async def _gateway(app: Decisions) -> Gateway:
    return await cast("Treadle", app).gateway()
