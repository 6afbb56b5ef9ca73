"""Views read page by page, by the key that they are in the order of."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import sql

Record = dict[str, Any]


class Place(NamedTuple):
    """Where a task belongs: its queue, its project, and who has it or is to have it."""

    queue: str
    project_id: UUID | None
    agent: str | None


class Pages(ABC):
    """Reads a part of a view; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: Any, parameters: Any = None) -> list[Record]:
        """Run a select and return its rows by name."""

    async def page(
        self,
        view: str,
        *,
        key: str,
        after: object = None,
        limit: int,
        newest: bool = False,
        where: Mapping[str, object] | None = None,
    ) -> list[Record]:
        """Rows after a key in its order; `where` has conditions like "queue = {}" and their values.

        A condition whose value is None does not count.
        """
        given = {condition: each for condition, each in (where or {}).items() if each is not None}
        conditions = [
            sql.SQL(condition).format(sql.Placeholder(f"p{number}"))
            for number, condition in enumerate(given)
        ]
        parameters = {f"p{number}": each for number, each in enumerate(given.values())}
        if after is not None:
            passed = sql.SQL("{} < {}" if newest else "{} > {}")
            conditions.append(passed.format(sql.Identifier(key), sql.Placeholder("after")))
            parameters["after"] = after
        query = sql.SQL("select * from {view} {where} order by {key} {order} limit {limit}").format(
            view=sql.Identifier("treadle", view),
            where=sql.SQL("where ") + sql.SQL(" and ").join(conditions)
            if conditions
            else sql.SQL(""),
            key=sql.Identifier(key),
            order=sql.SQL("desc" if newest else "asc"),
            limit=sql.Literal(limit),
        )
        return await self.rows(query, parameters)

    async def dag_places(self, dag_id: UUID) -> list[Place]:
        """Where the tasks of a DAG belong."""
        return await self._places("select id from treadle.dag_tasks where dag_id = %(of)s", dag_id)

    async def letter_places(self, ids: Sequence[UUID]) -> list[Place]:
        """Where letters belong, by their ids or by those of their tasks."""
        which = """
            select task_id from treadle.dead_letter_review
            where id = any (%(of)s) or task_id = any (%(of)s)
        """
        return await self._places(which, list(ids))

    async def task_places(self, ids: Sequence[UUID]) -> list[Place]:
        """Where tasks belong, those that exist."""
        return await self._places("select unnest(%(of)s::uuid[])", list(ids))

    async def places_by_id(self, ids: Sequence[UUID]) -> dict[UUID, Place]:
        """Where each task belongs, those that exist."""
        found = await self.rows(
            "select id, queue, project_id, agent from treadle.task_places where id = any (%(ids)s)",
            {"ids": list(ids)},
        )
        return {row["id"]: Place(row["queue"], row["project_id"], row["agent"]) for row in found}

    async def referred_places(
        self, ids: Sequence[UUID], names: Sequence[str], by: UUID | None
    ) -> list[Place]:
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
        return await self._places(which, list(ids), by=by, names=list(names))

    async def _places(self, which: str, of: object, **also: object) -> list[Place]:
        found = await self.rows(
            f"""
            select distinct queue, project_id, agent
            from treadle.task_places where id in ({which})
            """,
            {"of": of, **also},
        )
        return [Place(row["queue"], row["project_id"], row["agent"]) for row in found]
