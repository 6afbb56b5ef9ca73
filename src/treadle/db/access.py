"""Where tasks belong: queue, project and agent; reached as `db.access`."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from treadle.db.calls import Calls
from treadle.errors import TaskNotFound


class TaskLocation(NamedTuple):
    """Where a task belongs: its queue, its project, and who has it or is to have it."""

    queue: str
    project_id: UUID | None
    agent: str | None


class Access:
    """Where tasks belong, for checks of what a token may see."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def of_task(self, task_id: UUID) -> TaskLocation:
        """Where a task belongs; an error when there is no such task."""
        found = await self._calls.rows(
            "select queue, project_id, agent from treadle.task_places where id = %(id)s",
            {"id": task_id},
        )
        if not found:
            raise TaskNotFound(
                f"there is no task {task_id}",
                hint="List them: GET /v1/tasks; older ones: GET /v1/history",
                task_id=str(task_id),
            )
        return TaskLocation(**found[0])

    async def of_tasks(self, ids: Sequence[UUID]) -> list[TaskLocation]:
        """Where tasks belong, those that exist."""
        return await self._locations("select unnest(%(of)s::uuid[])", list(ids))

    async def by_id(self, ids: Sequence[UUID]) -> dict[UUID, TaskLocation]:
        """Where each task belongs, those that exist."""
        found = await self._calls.rows(
            "select id, queue, project_id, agent from treadle.task_places where id = any (%(ids)s)",
            {"ids": list(ids)},
        )
        return {
            row["id"]: TaskLocation(row["queue"], row["project_id"], row["agent"]) for row in found
        }

    async def of_dag(self, dag_id: UUID) -> list[TaskLocation]:
        """Where the tasks of a DAG belong."""
        return await self._locations(
            "select id from treadle.dag_tasks where dag_id = %(of)s", dag_id
        )

    async def of_letters(self, ids: Sequence[UUID]) -> list[TaskLocation]:
        """Where letters belong, by their ids or by those of their tasks."""
        which = """
            select task_id from treadle.dead_letter_review
            where id = any (%(of)s) or task_id = any (%(of)s)
        """
        return await self._locations(which, list(ids))

    async def of_references(
        self, ids: Sequence[UUID], names: Sequence[str], by: UUID | None
    ) -> list[TaskLocation]:
        """Where the tasks belong behind ids of tasks or artifacts, and behind names in a DAG.

        The DAG is that of the task `by`; its own subtasks are left out.
        """
        which = """
            select unnest(%(of)s::uuid[])
            union all
            select files.task_id from treadle.artifact_details as files
            where files.id = any (%(of)s)
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
        return await self._locations(which, list(ids), by=by, names=list(names))

    async def _locations(self, which: str, of: object, **also: object) -> list[TaskLocation]:
        found = await self._calls.rows(
            f"""
            select distinct queue, project_id, agent
            from treadle.task_places where id in ({which})
            """,
            {"of": of, **also},
        )
        return [TaskLocation(row["queue"], row["project_id"], row["agent"]) for row in found]
