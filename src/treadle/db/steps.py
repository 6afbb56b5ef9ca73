"""Steps, subtasks and the suspension of running tasks; reached as `db.steps`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.json import encode
from treadle.models import Enqueued


class Steps:
    """Save steps, spawn subtasks and suspend a running task."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def save(
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
        """Save a step; return the output saved under its name, and the verdict of the budgets."""
        rows = await self._calls.call(
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
        """Save the end of a sleep, by the clock of the database; return the saved output."""
        rows = await self._calls.call(
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

    async def spawn(self, task_id: UUID, token: UUID, name: str, tasks: bytes) -> list[Enqueued]:
        rows = await self._calls.call(
            "select id, created from treadle.spawn_tasks(%b, %b, %b, %b)",
            task_id,
            token,
            name,
            RawJson(tasks),
        )
        return [Enqueued(*row) for row in rows]

    async def suspend(
        self,
        task_id: UUID,
        token: UUID,
        *,
        children: Sequence[UUID],
        waits: Sequence[UUID],
        run_at: datetime | None,
        optional: bool,
    ) -> str:
        """Release the claim until all of these have ended; return the new state."""
        rows = await self._calls.call(
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

    async def list(self, task_id: UUID) -> list[Record]:
        """List the saved steps of a task, in order."""
        return await self._calls.rows(
            """
            select seq, name, kind, input, output, attempt, agent_id, saved_at, run_s, cost_usd
            from treadle.task_steps where task_id = %(id)s order by seq
            """,
            {"id": task_id},
        )
