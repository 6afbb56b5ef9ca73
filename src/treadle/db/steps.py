"""The calls of a running task: steps, waits, subtasks and spend, and the answers it waits for."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.json import encode
from treadle.models import Enqueued, ExpiredWait, OpenedWait, TaskResult


class DurableCalls(Calls):
    """What a claimed task asks of the database while it runs, and what others tell it."""

    async def now(self) -> datetime:
        """The database's clock."""
        rows = await self._call("select treadle.clock()")
        moment: datetime = rows[0][0]
        return moment

    async def save_step(
        self,
        task_id: UUID,
        token: UUID,
        name: str,
        output: bytes,
        *,
        input_hash: str | None,
        shown: str | None,
        took_s: float,
        calls: Sequence[Mapping[str, Any]],
    ) -> tuple[Any, str]:
        """Save a step; returns what is kept under its name, and whether the task may go on."""
        rows = await self._call(
            """
            select output, verdict
            from treadle.save_step(
              p_id => %b, p_token => %b, p_name => %b, p_output => %b, p_kind => 'step',
              p_input_hash => %b, p_input => %b,
              p_started_at => treadle.clock() - make_interval(secs => %b), p_calls => %b
            )
            """,
            task_id,
            token,
            name,
            RawJson(output),
            input_hash,
            shown,
            took_s,
            RawJson(encode(calls, name="calls")),
        )
        return rows[0][0], rows[0][1]

    async def save_sleep(self, task_id: UUID, token: UUID, name: str, seconds: float) -> Any:
        """Save until when to sleep, by the database's clock; returns what is kept."""
        rows = await self._call(
            """
            select output
            from treadle.save_step(
              p_id => %b, p_token => %b, p_name => %b, p_kind => 'sleep',
              p_output => jsonb_build_object(
                'until', treadle.clock() + make_interval(secs => %b)
              )
            )
            """,
            task_id,
            token,
            name,
            seconds,
        )
        return rows[0][0]

    async def spawn_tasks(
        self, task_id: UUID, token: UUID, name: str, tasks: bytes
    ) -> list[Enqueued]:
        rows = await self._call(
            "select id, created from treadle.spawn_tasks(%b, %b, %b, %b)",
            task_id,
            token,
            name,
            RawJson(tasks),
        )
        return [Enqueued(*row) for row in rows]

    async def suspend_task(
        self,
        task_id: UUID,
        token: UUID,
        *,
        children: Sequence[UUID],
        waits: Sequence[UUID],
        run_at: datetime | None,
        optional: bool,
    ) -> str:
        """Give up the claim until all of these have ended; returns the new state."""
        rows = await self._call(
            """
            select treadle.suspend_task(
              p_id => %b, p_token => %b, p_children => %b::uuid[], p_waits => %b::uuid[],
              p_run_at => %b, p_optional => %b
            )
            """,
            task_id,
            token,
            list(children),
            list(waits),
            run_at,
            optional,
        )
        return str(rows[0][0])

    async def read_results(self, ids: Sequence[UUID]) -> list[TaskResult]:
        rows = await self._call(
            """
            select id, status, output, failure_class, failure_reason
            from treadle.read_results(%b)
            """,
            list(ids),
        )
        return [TaskResult(*row) for row in rows]

    async def open_wait(self, task_id: UUID, token: UUID, name: str, wait: bytes) -> OpenedWait:
        rows = await self._call(
            "select wait_id, status, answer from treadle.open_wait(%b, %b, %b, %b)",
            task_id,
            token,
            name,
            RawJson(wait),
        )
        return OpenedWait(*rows[0])

    async def answer_wait(
        self, wait_id: UUID, value: bytes, by: str | None, note: str | None
    ) -> str:
        """Answer for somebody, or for the login when nobody is named."""
        rows = await self._call(
            "select treadle.answer_wait(%b, %b, coalesce(%b, session_user), %b)",
            wait_id,
            RawJson(value),
            by,
            note,
        )
        return str(rows[0][0])

    async def emit_event(
        self,
        event: str,
        payload: bytes,
        *,
        key: str,
        dedup_key: str | None,
        actor: str | None,
        task_id: UUID | None = None,
    ) -> int:
        rows = await self._call_once(
            "select treadle.emit_event(%b, %b, %b, %b, %b, %b)",
            event,
            RawJson(payload),
            key,
            dedup_key,
            actor,
            task_id,
        )
        return int(rows[0][0])

    async def expire_waits(self, limit: int, skip: Iterable[UUID]) -> list[ExpiredWait]:
        rows = await self._call(
            "select id, problem from treadle.expire_waits(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [ExpiredWait(*row) for row in rows]

    async def fork_task(
        self, task_id: UUID, from_step: str, changes: Mapping[str, Any], actor: str | None
    ) -> UUID:
        rows = await self._call_once(
            "select treadle.fork_task(%b, %b, %b, %b)",
            task_id,
            from_step,
            RawJson(encode(changes, name="changes")),
            actor,
        )
        made: UUID = rows[0][0]
        return made
