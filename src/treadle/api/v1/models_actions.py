"""The bodies of what people decide about tasks."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Id, Name, Object, Text
from treadle.api.v1.models_tasks import Status


class CancelTask(Body):
    """Why it is not wanted any more."""

    reason: Text | None = Field(None, max_length=2000)


class Cancelled(BaseModel):
    """cancelled, or already; and what fell with it: dependents and subtasks."""

    id: UUID
    verdict: Literal["cancelled", "already"]
    cascaded: list[UUID]


class RetryTask(Body):
    """Another round for a task that gave up or was cancelled, or a retry now."""

    changes: Object | None = Field(
        None, description="spec, set, unset, queue, type, priority, max_attempts and more."
    )
    note: Text | None = Field(None, max_length=2000)


class Moved(BaseModel):
    """The state that the task is in now."""

    id: UUID
    status: Status


class ForkTask(Body):
    """A new task that has the steps before `from_step`, at no cost."""

    from_step: Name
    changes: Object | None = Field(
        None, description="spec, queue, type, priority, max_attempts, timeout_s and more."
    )


class Filter(Body):
    """Which tasks: all that is named must fit, and something must be."""

    queue: Name | None = None
    type: Name | None = None
    status: Status | Annotated[list[Status], Field(min_length=1, max_length=20)] | None = None
    tag: Name | None = None
    dag_id: Id | None = None
    project_id: Id | None = None
    agent: Name | None = None
    failure_class: Name | None = None
    reason: Name | None = None
    created_before: Name | None = Field(None, description="A moment, or an age like 2h.")
    created_after: Name | None = None
    created_by: Name | None = None
    source: Name | None = None


class Bulk(Body):
    """Cancel or retry what a filter finds; a dry run only counts it."""

    action: Literal["cancel", "retry"]
    filter: Filter
    dry_run: bool = False
    limit: int = Field(10_000, ge=1, le=100_000)
    reason: Text | None = Field(None, max_length=2000)


class BulkCount(BaseModel):
    """So many tasks of one kind, and what became of them."""

    queue: str
    type: str
    status: str
    verdict: str
    why: str | None
    tasks: int


class Counted(BaseModel):
    """What was done, or with `dry_run` what would be."""

    dry_run: bool
    items: list[BulkCount]
