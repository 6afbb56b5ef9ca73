"""Create DAGs in a short notation, and call the functions of DAGs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle.models import Claim

Edges = Mapping[str, Sequence[str]]


@dataclass
class Graph:
    """A DAG in the database and the ids of its tasks by name."""

    driver: Driver
    id: UUID
    ids: dict[str, UUID]

    def __getitem__(self, name: str) -> UUID:
        return self.ids[name]

    @property
    def row(self) -> Record:
        [row] = self.driver.records("select * from treadle.dags where id = %s", self.id)
        return row

    @property
    def status(self) -> str:
        return str(self.row["status"])

    def states(self) -> dict[str, str]:
        """The state of each task by its name."""
        query = "select name, status from treadle.tasks where dag_id = %s and name is not null"
        return dict(self.driver.rows(query, self.id))

    def ready(self) -> set[str]:
        """The names of the tasks that can be claimed."""
        return {name for name, status in self.states().items() if status == "ready"}

    def events(self) -> list[str]:
        """The kinds of its events, in order."""
        query = "select kind from treadle.events where dag_id = %s order by id"
        return [row[0] for row in self.driver.rows(query, self.id)]

    def claim(self, name: str) -> Claim:
        """Claim one task of the DAG by name, regardless of other tasks."""
        self.driver.agent("a")
        others = self.driver.claim("a", 1000)
        [wanted] = [claim for claim in others if claim.id == self.ids[name]]
        for claim in others:
            if claim is not wanted:
                self.driver.release(claim)
        return wanted

    def complete(self, *names: str, output: object = None) -> None:
        for name in names:
            assert self.driver.complete(self.claim(name), output) == "completed"

    def give_up(self, name: str) -> None:
        """Dead-letter a task."""
        assert self.driver.fail(self.claim(name), action="fail") == "dead_lettered"


def node(name: str, after: Sequence[Any] = (), **options: Any) -> Record:
    """A task for `create`: of type code unless said."""
    return {"name": name, "type": "code", "after": list(after), **options}


def after(*tasks: UUID, **options: Any) -> Record:
    """Options of a task that depends on these."""
    return {"after": [str(each) for each in tasks], **options}


def create(driver: Driver, tasks: Sequence[Record], name: str = "dag", **options: Any) -> Graph:
    """Create a DAG with its tasks in one call."""
    [(dag_id, ids)] = driver.rows(
        "select dag_id, ids from treadle.create_dag(%s)",
        Jsonb({"name": name, "tasks": list(tasks), **options}),
    )
    names: list[str] = [str(task.get("name") or task["type"]) for task in tasks]
    return Graph(driver, dag_id, dict(zip(names, ids, strict=True)))


def shaped(driver: Driver, edges: Edges, **options: Any) -> Graph:
    """Create a DAG from `{task: dependencies}`."""
    return create(driver, [node(name, after) for name, after in edges.items()], **options)


def opened(driver: Driver, name: str = "dag", **options: Any) -> Graph:
    """An open DAG without tasks."""
    dag_id = driver.value("select treadle.open_dag(%s, %s)", name, Jsonb(options))
    return Graph(driver, dag_id, {})


def add(graph: Graph, task: Record) -> UUID:
    """Add one task to a DAG."""
    task_id: UUID = graph.driver.value("select treadle.add_task(%s, %s)", graph.id, Jsonb(task))
    if task.get("name"):
        graph.ids[task["name"]] = task_id
    return task_id


def start(graph: Graph) -> int:
    return int(graph.driver.value("select treadle.start_dag(%s)", graph.id))


def depend(driver: Driver, task: UUID, on: UUID, *, optional: bool = False) -> bool:
    return bool(driver.value("select treadle.add_dependency(%s, %s, %s)", task, on, optional))


def spawn(
    driver: Driver, parent: Claim, tasks: Sequence[Record], name: str = "spawn:1"
) -> list[UUID]:
    """Start subtasks from a claimed task."""
    rows = driver.rows(
        "select id from treadle.spawn_tasks(%s, %s, %s, %s)",
        *(parent.id, parent.token, name, Jsonb(list(tasks))),
    )
    return [row[0] for row in rows]


def suspend(
    driver: Driver, parent: Claim, children: Sequence[UUID] = (), *, optional: bool = False
) -> str:
    """Let a claimed task wait for its subtasks."""
    return str(
        driver.value(
            "select treadle.suspend_task(%s, %s, p_children => %s, p_optional => %s)",
            *(parent.id, parent.token, list(children), optional),
        )
    )
