"""What people read: the views of treadle, as rows by column name.

Only `select`; what changes the database is in the gateway.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import sql

from treadle.db.artifacts import ArtifactViews
from treadle.db.budgets import Ledger
from treadle.db.calls import Pages
from treadle.db.dead_letters import ReviewViews
from treadle.db.gates import GatingViews
from treadle.db.gateway import Gateway
from treadle.db.harness import HarnessViews
from treadle.db.push import DispatchViews, PushViews
from treadle.db.retention import RetentionViews
from treadle.db.schedules import ScheduleViews
from treadle.db.tasks import Explanations, NativeViews
from treadle.db.tokens import TokenViews
from treadle.db.triggers import TriggerViews
from treadle.db.webhooks import WebhookViews
from treadle.db.work import WorkViews
from treadle.errors import (
    DagNotFound,
    InvalidArgument,
    NotFound,
    TaskNotFound,
    WaitNotFound,
)

Record = dict[str, Any]


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
