"""The SQL interface: one method per SQL function, and the views as rows by column name.

Nothing else in treadle changes the database. A method of `Gateway` names the function, passes its
arguments and turns rows into models; decisions belong in SQL, where every client gets them.
`Reader` only selects.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from psycopg import OperationalError, Rollback, sql

from treadle.db.artifacts import ArtifactCalls, ArtifactViews
from treadle.db.budgets import Ledger, MoneyCalls
from treadle.db.calls import Pages, RawJson, json_array
from treadle.db.claims import ClaimingCalls, ValidationCalls
from treadle.db.connection import Connection
from treadle.db.dags import DagCalls
from treadle.db.dead_letters import ReviewCalls, ReviewViews
from treadle.db.errors import to_treadle_error, translate_errors
from treadle.db.gates import GatingCalls, GatingViews
from treadle.db.harness import HarnessCalls, HarnessViews
from treadle.db.keys import LimitCalls
from treadle.db.pool import Pool
from treadle.db.projects import OrderCalls
from treadle.db.push import DispatchCalls, DispatchViews, PushCalls, PushViews
from treadle.db.queues import TendingCalls
from treadle.db.replies import ReplyCalls
from treadle.db.retention import RetentionCalls, RetentionViews
from treadle.db.schedules import ScheduleCalls, ScheduleViews
from treadle.db.steps import DurableCalls
from treadle.db.tasks import Explanations, NativeCalls, NativeViews, enqueue_call
from treadle.db.tokens import TokenCalls, TokenViews
from treadle.db.triggers import TriggerCalls, TriggerViews
from treadle.db.webhooks import WebhookCalls, WebhookViews
from treadle.db.work import WorkCalls, WorkViews
from treadle.errors import (
    DagNotFound,
    InvalidArgument,
    NotFound,
    TaskNotFound,
    WaitNotFound,
)
from treadle.json import encode, encode_safely
from treadle.models import Enqueued, FailedAttempt, Failure, TakenResult

Pair = tuple[UUID, UUID]
Record = dict[str, Any]


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
                with translate_errors():
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
            raise to_treadle_error(error) from error

    async def fail_tasks(
        self, claims: Sequence[Pair], failures: Sequence[Failure]
    ) -> list[FailedAttempt]:
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
        return [FailedAttempt(*row) for row in rows]

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


class Reader(
    ArtifactViews,
    DispatchViews,
    Explanations,
    GatingViews,
    HarnessViews,
    Ledger,
    NativeViews,
    Pages,
    PushViews,
    RetentionViews,
    ReviewViews,
    ScheduleViews,
    TokenViews,
    TriggerViews,
    WebhookViews,
    WorkViews,
):
    """Reads views; every method returns plain dicts."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def tasks(
        self,
        *,
        status: str | None = None,
        queue: str | None = None,
        type: str | None = None,
        agent: str | None = None,
        limit: int = 50,
    ) -> list[Record]:
        """The newest tasks that match."""
        filters = {"status": status, "queue": queue, "type": type, "agent_id": agent}
        given = {name: value for name, value in filters.items() if value is not None}
        where = sql.SQL(" and ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
        )
        query = sql.SQL(
            """
            select
              id, queue, type, title, status, priority, effective_priority, attempt, max_attempts,
              agent_id, progress, failure_class, failure_reason, run_at, retry_at, created_at,
              started_at, completed_at, cost_usd
            from treadle.task_details
            {where}
            order by id desc
            limit {limit}
            """
        ).format(
            where=sql.SQL("where ") + where if given else sql.SQL(""), limit=sql.Literal(limit)
        )
        return await self.rows(query, given)

    async def task(self, task_id: UUID) -> Record:
        """One task with everything about it."""
        found = await self.rows(
            "select * from treadle.task_details where id = %(id)s", {"id": task_id}
        )
        if not found:
            raise TaskNotFound(
                f"there is no task {task_id}",
                hint="Tasks: treadle tasks list, GET /v1/tasks; older ones: treadle history list,"
                " GET /v1/history",
                task_id=str(task_id),
            )
        return found[0]

    async def find_task(self, text: str) -> UUID:
        """A task's id from its full form or a unique ending of six characters or more."""
        query = "select id from treadle.task_details where id::text like %(end)s limit 2"
        missing = TaskNotFound(f"no task id ends in {text}", hint="List them: treadle tasks list")
        return await self._find(text, query, "task", missing)

    async def find_dag(self, text: str) -> UUID:
        """A DAG's id from its full form or a unique ending of six characters or more."""
        query = "select id from treadle.dag_overview where id::text like %(end)s limit 2"
        missing = DagNotFound(f"no DAG id ends in {text}", hint="List them: treadle dag list")
        return await self._find(text, query, "DAG", missing)

    async def find_wait(self, text: str) -> UUID:
        """A wait's id from its full form or a unique ending of six characters or more."""
        query = "select id from treadle.wait_details where id::text like %(end)s limit 2"
        missing = WaitNotFound(f"no wait id ends in {text}", hint="List them: treadle waits")
        return await self._find(text, query, "wait", missing)

    async def _find(self, text: str, query: str, noun: str, missing: NotFound) -> UUID:
        try:
            return UUID(text)
        except ValueError:
            pass
        if len(text) < 6 or not set(text.lower()) <= set("0123456789abcdef-"):
            raise InvalidArgument(
                f"{text!r} is no {noun} id",
                hint="Give the whole id, or at least its last 6 characters.",
                argument=f"{noun.lower()}_id",
            )
        found = await self.rows(query, {"end": f"%{text.lower()}"})
        if not found:
            raise missing
        if len(found) > 1:
            raise InvalidArgument(
                f"more than one {noun} id ends in {text}", hint="Give more of it."
            )
        found_id: UUID = found[0]["id"]
        return found_id

    async def dags(self, *, status: str | None = None, limit: int = 50) -> list[Record]:
        """The newest DAGs, or those in one state."""
        return await self.rows(
            """
            select * from treadle.dag_overview
            where %(status)s::text is null or status = %(status)s
            order by id desc
            limit %(limit)s
            """,
            {"status": status, "limit": limit},
        )

    async def dag(self, dag_id: UUID) -> Record:
        """One DAG with its counts."""
        found = await self.rows(
            "select * from treadle.dag_overview where id = %(id)s", {"id": dag_id}
        )
        if not found:
            raise DagNotFound(
                f"there is no DAG {dag_id}", hint="List them: treadle dag list", dag_id=str(dag_id)
            )
        return found[0]

    async def dag_tasks(self, dag_id: UUID) -> list[Record]:
        """The tasks of a DAG with what each waits for, in the order of their making."""
        return await self.rows(
            "select * from treadle.dag_tasks where dag_id = %(id)s order by id", {"id": dag_id}
        )

    async def waits(
        self, *, ended: bool = False, task_id: UUID | None = None, limit: int = 50
    ) -> list[Record]:
        """What tasks wait for, the oldest first; with `ended` all waits, the newest first."""
        order = sql.SQL("id desc" if ended else "opened_at, id")
        query = sql.SQL(
            """
            select * from treadle.wait_details
            where
              {which}
              and (%(task_id)s::uuid is null or task_id = %(task_id)s)
            order by {order}
            limit %(limit)s
            """
        ).format(which=sql.SQL("true" if ended else "status = 'open'"), order=order)
        return await self.rows(query, {"task_id": task_id, "limit": limit})

    async def wait(self, wait_id: UUID) -> Record:
        """One wait with the answers so far."""
        found = await self.rows(
            "select * from treadle.wait_details where id = %(id)s", {"id": wait_id}
        )
        if not found:
            raise WaitNotFound(
                f"there is no wait {wait_id}", hint="List them: treadle waits", wait_id=str(wait_id)
            )
        return found[0]

    async def steps(self, task_id: UUID) -> list[Record]:
        """What a task has done and remembers, in order."""
        return await self.rows(
            """
            select seq, name, kind, input, output, attempt, agent_id, saved_at, run_s, cost_usd
            from treadle.task_steps where task_id = %(id)s order by seq
            """,
            {"id": task_id},
        )

    async def dependencies(self, task: Record) -> list[Record]:
        """The tasks that a task waits for or waited for."""
        found = await self.rows(
            """
            select id, name, type, title, status from treadle.task_details
            where id = any(%(ids)s) order by id
            """,
            {"ids": task["depends_on"]},
        )
        return [{**each, "met": each["id"] not in task["blocked_by"]} for each in found]

    async def subtasks(self, task_id: UUID) -> list[Record]:
        """The tasks that a task has spawned."""
        return await self.rows(
            """
            select id, name, type, title, status, cost_usd from treadle.task_details
            where parent_id = %(id)s order by id
            """,
            {"id": task_id},
        )

    async def history(self, task_id: UUID) -> list[Record]:
        """Every attempt of a task, oldest first."""
        return await self.rows(
            """
            select * from treadle.dispatch_log where task_id = %(id)s
            order by coalesce(ended_at, 'infinity'), attempt
            """,
            {"id": task_id},
        )

    async def agents(self) -> list[Record]:
        return await self.rows(
            "select * from treadle.agent_load order by alive desc, heartbeat_at desc"
        )

    async def queues(self) -> list[Record]:
        return await self.rows("select * from treadle.queue_health order by queue")

    async def projects(self) -> list[Record]:
        return await self.rows("select * from treadle.project_load order by name")

    async def stuck(self) -> list[Record]:
        return await self.rows("select * from treadle.stuck order by since")

    async def rows(
        self, query: str | sql.Composed, parameters: dict[str, Any] | Sequence[Any] | None = None
    ) -> list[Record]:
        """Run a select and return its rows by name."""
        return await self._gateway.select(query, parameters)
