"""Claims: agents take, renew and end tasks; reached as `db.claims`."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from psycopg import OperationalError, Rollback

from treadle.db.calls import Calls, RawJson, json_array
from treadle.db.errors import to_treadle_error, translate_errors
from treadle.db.pool import Connection
from treadle.json import encode_safely
from treadle.models import Claim, FailedAttempt, Failure, Reaped

Pair = tuple[UUID, UUID]
# The columns of a claim besides its token.
_CLAIM = """
  id, queue, type, spec, attempt, max_attempts, timeout_s, priority, lease_until, created_at,
  deadline_at, title, tags, parent_id, dag_id, project_id, idempotency_key, previous, name, steps,
  problem, max_cost_usd, cost_usd, gates, models, validation, report
"""


class Claims:
    """Claim, renew and end tasks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def take(
        self,
        agent: str,
        queues: Sequence[str],
        *,
        types: Sequence[str] | None,
        limit: int,
        token: UUID,
        start: bool = False,
        idle: bool = False,
    ) -> list[Claim]:
        """Claim up to `limit` tasks; if the response is lost, repeat with the same token."""
        rows = await self._calls.claim_call(
            f"select {_CLAIM} from treadle.claim_tasks(%b, %b, %b, %b::integer, %b, %b, %b)",
            agent,
            list(queues),
            None if types is None else list(types),
            limit,
            start,
            token,
            idle,
        )
        return [Claim(token, *row) for row in rows]

    async def take_each(
        self,
        limits: Mapping[str, int],
        queues: Sequence[str],
        *,
        types: Sequence[str] | None,
        start: bool = False,
    ) -> dict[str, list[Claim]]:
        """Claim up to a number of tasks for each agent; skipped agents are not in the result."""
        rows = await self._calls.claim_call(
            f"""
            select agent, claim_token, {_CLAIM}
            from treadle.claim_tasks_for_agents(%b, %b::integer[], %b, %b, %b)
            """,
            list(limits),
            list(limits.values()),
            list(queues),
            None if types is None else list(types),
            start,
        )
        found: dict[str, list[Claim]] = {}
        for agent, token, *claim in rows:
            claims = found.setdefault(agent, [])
            if token is not None:
                claims.append(Claim(token, *claim))
        return found

    async def start(self, claims: Sequence[Pair]) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.start_tasks(%b, %b)", *_columns(claims)
        )
        return {row[0]: row[1] for row in rows}

    async def heartbeat(
        self, claims: Sequence[Pair], progress: Sequence[bytes | None] | None = None
    ) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.heartbeat_tasks(%b, %b, %b::jsonb[])",
            *_columns(claims),
            None if progress is None else json_array(progress),
        )
        return {row[0]: row[1] for row in rows}

    async def validate(self, claims: Sequence[tuple[UUID, UUID]]) -> dict[UUID, str]:
        """Mark tasks as validating; return for each claim whether it still holds."""
        rows = await self._calls.call(
            "select id, verdict from treadle.validate_tasks(%b, %b)",
            [claim[0] for claim in claims],
            [claim[1] for claim in claims],
        )
        return {row[0]: row[1] for row in rows}

    async def add_note(self, task_id: UUID, token: UUID, note: str) -> None:
        await self._calls.call("select treadle.add_attempt_note(%b, %b, %b)", task_id, token, note)

    async def complete(
        self,
        claims: Sequence[Pair],
        outputs: Sequence[bytes | None],
        run_ms: Sequence[int],
        reports: Sequence[bytes | None] = (),
    ) -> dict[UUID, str]:
        """Complete tasks; the result has only those that this call did not complete."""
        rows = await self._calls.call(
            """
            select id, verdict
            from treadle.complete_tasks(%b, %b, %b::jsonb[], %b::integer[], %b::jsonb[])
            where verdict <> 'completed'
            """,
            *_columns(claims),
            json_array(outputs),
            list(run_ms),
            json_array(reports),
        )
        return dict(rows)

    async def complete_one(
        self, task_id: UUID, token: UUID, output: bytes | None, report: bytes | None
    ) -> str:
        rows = await self._calls.call(
            "select treadle.complete_task(%b, %b, %b::jsonb, %b::jsonb)",
            task_id,
            token,
            None if output is None else RawJson(output),
            None if report is None else RawJson(report),
        )
        return str(rows[0][0])

    @asynccontextmanager
    async def completing(
        self,
        task_id: UUID,
        token: UUID,
        output: Callable[[], bytes],
        report: Callable[[], bytes | None] = lambda: None,
    ) -> AsyncIterator[Connection]:
        """Open a transaction for the writes of the caller that also completes a task.

        It is never repeated, and it may take as long as the statements of the caller need.
        """
        raised: BaseException | None = None
        lost = False
        try:
            async with self._calls.begin(self._calls.handler_pool) as conn:
                deadline_s = conn.call_timeout_s
                conn.call_timeout_s = max(deadline_s, self._calls.statement_limit_s)
                conn.watch, conn.watch_every_s = self._calls.is_active, deadline_s
                try:
                    yield conn
                except BaseException as error:
                    raised, lost = error, conn.broken
                    raise
                finally:
                    conn.call_timeout_s = deadline_s
                    conn.watch = None
                with translate_errors():
                    decision_report = report()
                    cursor = await conn.execute(
                        "select treadle.complete_task(%b, %b, %b, %b::jsonb)",
                        (
                            task_id,
                            token,
                            RawJson(output()),
                            None if decision_report is None else RawJson(decision_report),
                        ),
                    )
                if await cursor.fetchone() == ("already",):
                    # An earlier commit succeeded and its response was lost: this is a repeat.
                    raise Rollback
        except OperationalError as error:
            # Errors of the caller's statements are raised unchanged, unless the connection is lost.
            if error is raised and not lost:
                raise
            raise to_treadle_error(error) from error

    async def fail(
        self, claims: Sequence[Pair], failures: Sequence[Failure]
    ) -> list[FailedAttempt]:
        rows = await self._calls.call(
            """
            select id, verdict, retry_at, class
            from treadle.fail_tasks(
              %b, %b, %b::text[], %b, %b::text[], %b::float8[], %b::text[], %b::jsonb[]
            )
            """,
            *_columns(claims),
            [failure.failure_class for failure in failures],
            [failure.error for failure in failures],
            [failure.action for failure in failures],
            [failure.retry_after_s for failure in failures],
            [failure.key for failure in failures],
            json_array(
                encode_safely(each.feedback) if each.feedback else None for each in failures
            ),
        )
        return [FailedAttempt(*row) for row in rows]

    async def release(self, claims: Sequence[Pair]) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.release_tasks(%b, %b)", *_columns(claims)
        )
        return {row[0]: row[1] for row in rows}

    async def reap(self, limit: int, skip: Iterable[UUID]) -> list[Reaped]:
        rows = await self._calls.call(
            "select id, reason, status, problem from treadle.reap_claims(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Reaped(*row) for row in rows]

    async def next_reap_in(self) -> float | None:
        return await self._calls.seconds_until("treadle.next_reap_at()")


def _columns(claims: Sequence[Pair]) -> tuple[list[UUID], list[UUID]]:
    return [claim[0] for claim in claims], [claim[1] for claim in claims]
