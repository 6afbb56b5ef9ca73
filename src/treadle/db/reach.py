"""Which tasks a caller sees, as a condition of the SQL that reads them.

The rule itself is `treadle.is_visible`. This module only passes the restrictions of a token to it,
or to `visible_tasks` and `visible_dags`, which are built on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from psycopg import sql


@dataclass(frozen=True)
class Reach:
    """Queues, a project and an agent that a caller is restricted to; None does not restrict."""

    queues: tuple[str, ...] | None = None
    project_id: UUID | None = None
    agent: str | None = None

    ALL: ClassVar["Reach"]

    @property
    def is_restricted(self) -> bool:
        return self != Reach.ALL

    @property
    def is_by_queue(self) -> bool:
        """Whether queues are the only restriction: then rows of these queues are visible."""
        return self.queues is not None and self.project_id is None and self.agent is None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The values of `arguments`."""
        return {
            "reach_queues": None if self.queues is None else list(self.queues),
            "reach_project": self.project_id,
            "reach_agent": self.agent,
        }

    @property
    def arguments(self) -> sql.Composed:
        """The last three arguments of the functions; a null is a constant that the planner sees."""
        given = {
            "reach_queues": (self.queues, "text[]"),
            "reach_project": (self.project_id, "uuid"),
            "reach_agent": (self.agent, "text"),
        }
        return sql.SQL(", ").join(
            sql.SQL("{}::{}").format(
                sql.SQL("null") if value is None else sql.Placeholder(name), sql.SQL(kind)
            )
            for name, (value, kind) in given.items()
        )

    def of_task(self, column: str = "task_id") -> sql.Composed:
        """A condition: the task whose id is in this column is visible."""
        return self._exists("visible_tasks", column)

    def of_dag(self, column: str = "dag_id") -> sql.Composed:
        """A condition: all tasks of the DAG whose id is in this column are visible."""
        return self._exists("visible_dags", column)

    def of_row(self, agent: str = "agent") -> sql.Composed:
        """A condition: a row that has a task's queue and project_id, and its agent, is visible."""
        return sql.SQL("treadle.is_visible(queue, project_id, {}, {})").format(
            sql.SQL(agent), self.arguments
        )

    def of_record(self) -> sql.Composed:
        """A condition: a row with a task_id and a queue is visible; its task may be gone.

        A caller that is only restricted to queues sees the rows of these queues. Other restrictions
        can only be checked while the task exists.
        """
        if self.is_by_queue:
            return sql.SQL("treadle.is_visible(queue, null, null, {})").format(self.arguments)
        return self.of_task()

    def of_event(self) -> sql.Composed:
        """A condition: the event is about a visible task or, if about no task, a visible DAG."""
        if self.is_by_queue:
            return sql.SQL("{} and (task_id is not null or dag_id is null or {})").format(
                self.of_record(), self.of_dag()
            )
        return sql.SQL("({} or (task_id is null and {}))").format(self.of_task(), self.of_dag())

    def _exists(self, function: str, column: str) -> sql.Composed:
        # With an offset PostgreSQL looks up row by row. Without it, wrong statistics may make it
        # read all tasks for one page of a list.
        return sql.SQL("exists (select from {}({}) as seen where seen.id = {} offset 0)").format(
            sql.Identifier("treadle", function), self.arguments, sql.SQL(column)
        )


Reach.ALL = Reach()
