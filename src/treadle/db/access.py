"""What a caller sees: checks of single rows, for reads and for writes; reached as `db.access`.

Lists are restricted by the conditions of `treadle.db.reach`. The rule is in SQL: `is_visible`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal
from uuid import UUID

from psycopg import sql

from treadle.db.calls import Calls
from treadle.db.reach import Reach
from treadle.errors import (
    ArtifactNotFound,
    DagNotFound,
    NotFound,
    TaskNotFound,
    TreadleError,
    WaitNotFound,
)

Noun = Literal["task", "dag", "dead letter", "wait", "artifact"]
# The tasks that a row of this kind belongs to.
_TASKS_OF: dict[Noun, str] = {
    "task": "select unnest(%(ids)s::uuid[])",
    "dead letter": """
        select task_id from treadle.dead_letter_details
        where id = any (%(ids)s) or task_id = any (%(ids)s)
    """,
    "wait": "select task_id from treadle.wait_details where id = any (%(ids)s)",
    "artifact": "select task_id from treadle.artifact_details where id = any (%(ids)s)",
}
_MISSING: dict[Noun, type[TreadleError]] = {
    "task": TaskNotFound,
    "dag": DagNotFound,
    "dead letter": NotFound,
    "wait": WaitNotFound,
    "artifact": ArtifactNotFound,
}


class Access:
    """Whether rows are visible to a restricted caller."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def sees(self, reach: Reach, noun: Noun, row_id: UUID) -> bool:
        """Whether a row is visible; raises NotFound when there is no such row."""
        if noun == "dag":
            found = await self._sees_dag(reach, row_id)
        else:
            found = await self._sees(reach, _TASKS_OF[noun], ids=[row_id])
        if found is None:
            hint = "List them: GET /v1/tasks; older ones: GET /v1/history"
            raise _MISSING[noun](
                f"there is no {noun} {row_id}",
                hint=hint if noun == "task" else None,
                **{f"{noun.replace(' ', '_')}_id": str(row_id)},
            )
        return found

    async def sees_all(self, reach: Reach, noun: Noun, ids: Sequence[UUID]) -> bool:
        """Whether all of these rows are visible; rows that do not exist are left out."""
        return await self._sees(reach, _TASKS_OF[noun], ids=list(ids)) is not False

    async def sees_dag(self, reach: Reach, dag_id: UUID) -> bool:
        """Whether a DAG exists and is visible."""
        return bool(await self._sees_dag(reach, dag_id))

    async def seen(self, reach: Reach, ids: Iterable[UUID]) -> set[UUID]:
        """Those of these tasks that are visible."""
        query = sql.SQL("select id from treadle.visible_tasks({}) where id = any (%(ids)s)")
        rows = await self._rows(query, reach, ids=list(ids))
        return {row["id"] for row in rows}

    async def sees_references(
        self, reach: Reach, ids: Sequence[UUID], names: Sequence[str], by: UUID | None
    ) -> bool:
        """Whether tasks are visible that others refer to by ids of tasks or artifacts, or by name.

        A name is that of a task in the DAG of the task `by`, whose own subtasks are left out.
        """
        which = """
            select unnest(%(ids)s::uuid[])
            union all
            select files.task_id from treadle.artifact_details as files
            where files.id = any (%(ids)s)
            union all
            select nodes.id from treadle.dag_tasks as nodes
            where
              nodes.name = any (%(names)s)
              and nodes.dag_id = (
                select mine.dag_id from treadle.task_details as mine where mine.id = %(by)s
              )
            except
            select children.id from treadle.task_details as children
            where children.parent_id = %(by)s
        """
        found = await self._sees(reach, which, ids=list(ids), names=list(names), by=by)
        return found is not False

    async def sees_claims(self, reach: Reach, claims: Sequence[tuple[UUID, UUID]]) -> bool:
        """Whether all claims are visible, by the agent that made each, not by the current agent.

        A token that belongs to no claim counts as visible: it has no effect.
        """
        query = sql.SQL(
            "select bool_and({}) as visible from treadle.claim_owners(%(ids)s, %(tokens)s)"
        ).format(reach.of_row("agent_id"))
        rows = await self._calls.rows(
            query,
            {
                **reach.parameters,
                "ids": [task_id for task_id, _ in claims],
                "tokens": [token for _, token in claims],
            },
        )
        return rows[0]["visible"] is not False

    async def lock(self, reach: Reach, noun: Noun, row_id: UUID) -> bool:
        """Lock a row until the transaction ends; whether it is visible."""
        if noun == "dag":
            which, dag_id = "select null::uuid where %(ids)s is null", row_id
        else:
            which, dag_id = _TASKS_OF[noun], None
        query = sql.SQL("select treadle.lock_visible(array({}), %(dag)s::uuid, {}) as visible")
        rows = await self._calls.rows(
            query.format(sql.SQL(which), reach.arguments),
            {**reach.parameters, "ids": [row_id], "dag": dag_id},
        )
        return bool(rows[0]["visible"])

    async def _sees(self, reach: Reach, which: str, **parameters: object) -> bool | None:
        query = sql.SQL(
            "select bool_and({}) as visible from treadle.task_access where id in ({})"
        ).format(reach.of_row(), sql.SQL(which))
        rows = await self._calls.rows(query, {**reach.parameters, **parameters})
        found: bool | None = rows[0]["visible"]
        return found

    async def _sees_dag(self, reach: Reach, dag_id: UUID) -> bool | None:
        query = sql.SQL(
            """
            select exists (select from treadle.visible_dags({}) where id = %(id)s) as visible
            from treadle.dag_overview where dag_overview.id = %(id)s
            """
        )
        rows = await self._rows(query, reach, id=dag_id)
        return rows[0]["visible"] if rows else None

    async def _rows(self, query: sql.SQL, reach: Reach, **parameters: object) -> list[Any]:
        return await self._calls.rows(
            query.format(reach.arguments), {**reach.parameters, **parameters}
        )
