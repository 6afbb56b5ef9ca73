"""One method per SQL function; nothing else in treadle changes the database.

A method names the function, passes its arguments and turns rows into models. Decisions belong in
SQL, where every client gets them.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from psycopg import OperationalError, Rollback

from treadle.db.artifacts import ArtifactCalls
from treadle.db.budgets import MoneyCalls
from treadle.db.calls import RawJson, json_array
from treadle.db.claims import ClaimingCalls, ValidationCalls
from treadle.db.connection import Connection
from treadle.db.dags import DagCalls
from treadle.db.dead_letters import ReviewCalls
from treadle.db.errors import translate, translated
from treadle.db.gates import GatingCalls
from treadle.db.harness import HarnessCalls
from treadle.db.keys import LimitCalls
from treadle.db.pool import Pool
from treadle.db.projects import OrderCalls
from treadle.db.push import DispatchCalls, PushCalls
from treadle.db.queues import TendingCalls
from treadle.db.replies import ReplyCalls
from treadle.db.retention import RetentionCalls
from treadle.db.schedules import ScheduleCalls
from treadle.db.steps import DurableCalls
from treadle.db.tasks import NativeCalls, enqueue_call
from treadle.db.tokens import TokenCalls
from treadle.db.triggers import TriggerCalls
from treadle.db.webhooks import WebhookCalls
from treadle.db.work import WorkCalls
from treadle.json import encode, encode_safely
from treadle.models import (
    Enqueued,
    Failed,
    Failure,
    TakenResult,
)

Pair = tuple[UUID, UUID]


class Gateway(
    ArtifactCalls,
    ClaimingCalls,
    DagCalls,
    DispatchCalls,
    DurableCalls,
    GatingCalls,
    HarnessCalls,
    LimitCalls,
    MoneyCalls,
    NativeCalls,
    OrderCalls,
    PushCalls,
    ReplyCalls,
    RetentionCalls,
    ReviewCalls,
    ScheduleCalls,
    TendingCalls,
    TokenCalls,
    TriggerCalls,
    ValidationCalls,
    WebhookCalls,
    WorkCalls,
):
    """The SQL interface of treadle as typed methods."""

    # The longest statement of a handler in a transaction of its own.
    statement_limit_s = 600.0
    # Where such transactions have their connections. A handler keeps one for as long as it likes,
    # so they are not those of the calls that handlers make meanwhile.
    _transactions: Pool | None = None

    def for_handlers(self, transactions: Pool) -> "Gateway":
        """The same calls, with connections of their own for transactions of handlers."""
        # What runs in a slot waits for a connection like for the slot.
        self._pool.patience = "shortage"
        made = Gateway(self._pool)
        made.statement_limit_s = self.statement_limit_s
        made._transactions = transactions
        return made

    async def schema_version(self) -> tuple[int | None, str | None]:
        rows = await self._call("select version, code_checksum from treadle.schema_version()")
        return rows[0][0], rows[0][1]

    async def enqueue_batch(
        self,
        queue: str,
        type: str,
        *,
        specs: Sequence[bytes],
        options: bytes,
        keys: Sequence[str | None] | None,
    ) -> list[Enqueued]:
        # A task without a key would be there twice if the first call did succeed.
        call = self._call if keys and None not in keys else self._call_once
        rows = await call(*enqueue_call(queue, type, specs=specs, options=options, keys=keys))
        return [Enqueued(*row) for row in rows]

    async def start_tasks(self, claims: Sequence[Pair]) -> dict[UUID, str]:
        rows = await self._call(
            "select id, verdict from treadle.start_tasks(%b, %b)", *_columns(claims)
        )
        return {row[0]: row[1] for row in rows}

    async def heartbeat_tasks(
        self, claims: Sequence[Pair], progress: Sequence[bytes | None] | None = None
    ) -> dict[UUID, str]:
        rows = await self._call(
            "select id, verdict from treadle.heartbeat_tasks(%b, %b, %b::jsonb[])",
            *_columns(claims),
            None if progress is None else json_array(progress),
        )
        return {row[0]: row[1] for row in rows}

    async def complete_tasks(
        self,
        claims: Sequence[Pair],
        outputs: Sequence[bytes | None],
        run_ms: Sequence[int],
        reports: Sequence[bytes | None] = (),
    ) -> dict[UUID, str]:
        """Complete tasks; the answer names only those that were not completed by this call."""
        rows = await self._call(
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

    @asynccontextmanager
    async def completing(
        self,
        task_id: UUID,
        token: UUID,
        output: Callable[[], bytes],
        report: Callable[[], bytes | None] = lambda: None,
    ) -> AsyncIterator[Connection]:
        """A transaction for the caller's own writes that ends with the completion of a task.

        It is never repeated: the writes in it are the caller's, and so is the time they take.
        """
        theirs: BaseException | None = None
        lost = False
        try:
            async with self._begun(self._transactions) as conn:
                deadline_s = conn.call_timeout_s
                conn.call_timeout_s = max(deadline_s, self.statement_limit_s)
                conn.watch, conn.watch_every_s = self._pool.is_active, deadline_s
                try:
                    yield conn
                except BaseException as error:
                    theirs, lost = error, conn.broken
                    raise
                finally:
                    conn.call_timeout_s = deadline_s
                    conn.watch = None
                with translated():
                    given = report()
                    cursor = await conn.execute(
                        "select treadle.complete_task(%b, %b, %b, %b::jsonb)",
                        (
                            task_id,
                            token,
                            RawJson(output()),
                            None if given is None else RawJson(given),
                        ),
                    )
                if await cursor.fetchone() == ("already",):
                    # The first commit went through and its answer was lost: this is a repeat.
                    raise Rollback
        except OperationalError as error:
            # What the caller's own statements raise is the caller's, unless the connection is gone.
            if error is theirs and not lost:
                raise
            raise translate(error) from error

    async def fail_tasks(self, claims: Sequence[Pair], failures: Sequence[Failure]) -> list[Failed]:
        rows = await self._call(
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
        return [Failed(*row) for row in rows]

    async def release_tasks(self, claims: Sequence[Pair]) -> dict[UUID, str]:
        rows = await self._call(
            "select id, verdict from treadle.release_tasks(%b, %b)", *_columns(claims)
        )
        return {row[0]: row[1] for row in rows}

    async def cancel_tasks(
        self, ids: Sequence[UUID], reason: str | None, actor: str | None = None
    ) -> dict[UUID, str]:
        rows = await self._call(
            "select id, verdict from treadle.cancel_tasks(%b, %b, %b)", list(ids), reason, actor
        )
        return {row[0]: row[1] for row in rows}

    async def retry_task(
        self,
        task_id: UUID,
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        reviewer: str | None = None,
        note: str | None = None,
    ) -> str:
        rows = await self._call(
            "select treadle.retry_task(%b, %b, %b, %b, %b)",
            task_id,
            resolution,
            RawJson(encode(dict(changes or {}), name="changes")),
            reviewer,
            note,
        )
        return str(rows[0][0])

    async def take_results(self, consumer: str, limit: int, token: UUID) -> list[TakenResult]:
        rows = await self._call(
            """
            select id, queue, type, spec, output, decision_report, completed_by, completed_at
            from treadle.take_results(%b, %b::integer, %b)
            """,
            consumer,
            limit,
            token,
        )
        return [TakenResult(*row) for row in rows]


def _columns(claims: Sequence[Pair]) -> tuple[list[UUID], list[UUID]]:
    return [claim[0] for claim in claims], [claim[1] for claim in claims]
