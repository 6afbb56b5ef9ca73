"""Schedules as they are sent and shown."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Object, Text


class ScheduleSettings(Body):
    """When something is made, and what: a task or a DAG. What is not named stays as it is."""

    cron: Text | None = Field(
        None, min_length=1, max_length=200, description="Five fields, or a word like @daily."
    )
    timezone: Text | None = Field(None, min_length=1, max_length=100, examples=["Europe/Berlin"])
    task: Object | None = Field(None, description='The task to make: {"type": "report"}.')
    dag: Object | None = Field(None, description="Or the DAG to make, as POST /v1/dags takes it.")
    jitter_s: int | None = Field(None, ge=0, le=86_400)
    catch_up: Literal["skip", "one", "all"] | None = None
    overlap: Literal["allow", "skip", "cancel_previous"] | None = None
    grace_s: int | None = Field(None, ge=1, le=86_400)


class Schedule(BaseModel):
    """A schedule: its next time, and what became of the last."""

    id: UUID
    name: str
    state: Literal["active", "paused", "stopped"]
    cron: str
    timezone: str
    next_at: datetime | None
    last_at: datetime | None
    last_status: str | None
    last_error: str | None
    last_task: UUID | None
    last_dag: UUID | None
    last_queue_id: str | None
    makes: Literal["task", "dag"]
    what: str
    queue: str | None
    jitter_s: int
    catch_up: str
    overlap: str
    grace_s: int
    template: dict[str, Any]
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    in_code: bool
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class ScheduleRun(BaseModel):
    """What became of a time of a schedule."""

    id: int
    schedule: str
    nominal_at: datetime | None
    missed_until: datetime | None
    fired_at: datetime
    status: str
    now: str | None
    task_id: UUID | None
    dag_id: UUID | None
    actor: str | None
    error: str | None


class MadeBySchedule(BaseModel):
    """What an extra run made; not `created` is one that had its key already."""

    task_id: UUID | None
    dag_id: UUID | None
    created: bool
