"""Subtasks: create them, continue, or wait for their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from treadle.errors import InvalidArgument, TaskFailed
from treadle.json import encode
from treadle.masking import excerpt
from treadle.models import TaskResult
from treadle.worker.journal import Journal, SuspendReason
from treadle.worker.references import TaskReference

if TYPE_CHECKING:
    from treadle.worker.registry import Call, Enqueueable


class Child(TaskReference):
    """A subtask, as the task that spawned it sees it."""

    __slots__ = ("_spawner", "created", "id")

    id: UUID

    def __init__(self, spawner: Spawner, task_id: UUID, *, created: bool) -> None:
        self._spawner = spawner
        self.id = task_id
        self.created = created

    def __repr__(self) -> str:
        return f"<Child {self.id}>"

    async def result(self) -> Any:
        """Return its output; the task releases its claim until the subtask has ended."""
        [output] = await self._spawner.results([self.id])
        return output


class Spawner:
    """Creates subtasks for one attempt; a later attempt gets the same ones."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._created: set[UUID] = set()

    async def spawn(self, calls: Sequence[Call], name: str | None) -> list[Child]:
        """Create subtasks, in the order of the calls."""
        journal, claim = self._journal, self._journal.claim
        journal.forbid_in_step("spawn")
        journal.check()
        if not calls:
            return []
        types = dict.fromkeys(call.definition.name for call in calls)
        step = journal.name("spawn", name or ", ".join(types))
        tasks = encode([call.as_json() for call in calls], name="tasks")
        if step in journal.steps:
            ids = [UUID(each) for each in journal.steps[step].output["ids"]]
            return [Child(self, each, created=False) for each in ids]
        async with journal.busy():
            spawned = await journal.call(
                lambda: journal.db.steps.spawn(claim.id, claim.token, step, tasks)
            )
            journal.add(step, "spawn", {"ids": [str(each.id) for each in spawned]})
        self._created.update(each.id for each in spawned if each.created)
        return [Child(self, each.id, created=each.created) for each in spawned]

    async def results(self, ids: Sequence[UUID], *, exceptions: bool = False) -> list[Any]:
        """Return the outputs of subtasks; the task releases its claim until all have ended."""
        journal = self._journal
        journal.forbid_in_step("wait")
        ended: dict[UUID, TaskResult] = {}
        # Skip the query if this attempt has created all of them: they have hardly ended yet, and
        # the suspension notices if they have.
        if not self._created.issuperset(ids):
            async with journal.busy():
                found = await journal.call(lambda: journal.db.tasks.read_results(ids))
            ended = {each.id: each for each in found}
        failed = next((each for each in ended.values() if each.status != "completed"), None)
        if failed is not None and not exceptions:
            raise _failure(failed)
        if len(ended) < len(set(ids)):
            left = [each for each in ids if each not in ended]
            await journal.suspend(SuspendReason(children=left, optional=exceptions))
        journal.check()
        return [
            ended[each].output if ended[each].status == "completed" else _failure(ended[each])
            for each in ids
        ]


def as_call(task: Enqueueable, arguments: dict[str, Any]) -> Call:
    """Return a task with its arguments as a call; a call is returned unchanged."""
    if not hasattr(task, "call"):
        raise InvalidArgument(
            f"{excerpt(task)} cannot be spawned",
            hint="Pass a task and its arguments, or task.call(…).",
            argument="task",
        )
    return task.call(**arguments)


def _failure(ended: TaskResult) -> TaskFailed:
    return TaskFailed(
        f"subtask {ended.id} ended as {ended.status}: {ended.failure_reason or 'no reason given'}",
        hint=f"See its history: treadle tasks show {ended.id}",
        task_id=str(ended.id),
        status=ended.status,
        failure_class=ended.failure_class,
    )
