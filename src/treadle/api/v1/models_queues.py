"""Queues and types as they are sent and shown."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Name, Object, Text, Usd

KEEP = 3_153_600_000


class TaskDefaults(Body):
    """What tasks get that do not say."""

    max_attempts: int | None = Field(None, ge=1, le=1000)
    timeout_s: float | None = Field(None, gt=0, le=31_536_000)
    ageing_rate: float | None = Field(
        None, ge=0, le=1000, description="Priority points gained per minute of waiting."
    )
    retry: Object | None = Field(None, description="How failed attempts are retried.")
    priority: int | None = Field(None, ge=0, le=100, description="0 is first, 100 last.")


class QueueSettings(TaskDefaults):
    """What a queue is like; what is not named stays as it is."""

    max_spec_bytes: int | None = Field(None, ge=1, le=268_435_456)
    audit: Literal["compact", "full"] | None = None
    max_depth: int | None = Field(
        None, ge=1, le=2**31 - 1, description="Most tasks that may wait; null is any number."
    )
    fair: bool | None = Field(None, description="Let projects take turns.")
    hold: bool | None = Field(None, description="Keep new tasks back until they are released.")
    keep_completed_s: float | None = Field(None, ge=0, le=KEEP)
    keep_cancelled_s: float | None = Field(None, ge=0, le=KEEP)
    keep_dead_s: float | None = Field(None, ge=0, le=KEEP)
    prune_mode: Literal["archive", "drop"] | None = None


class TypeSettings(TaskDefaults):
    """What tasks of a type are like; what is not named stays as it is."""

    description: Text | None = Field(None, max_length=1000)
    gates: list[Name] | None = Field(None, max_length=20)
    breaker: Object | None = Field(None, description="threshold, first_probe_s, cooldown_s.")
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    on_budget: Literal["ask", "fail"] | None = None
    validation: list[Object] | None = Field(None, max_length=20)
    report: Literal["required", "optional"] | None = None
    models: list[Name] | None = Field(None, max_length=20)
    fallback_models: list[Name] | None = Field(None, max_length=20)


class Queue(BaseModel):
    """How deep a queue is, and how fast; rates are of the last five minutes."""

    queue: str
    paused: bool
    ready: int
    waiting: int
    in_flight: int
    retrying: int
    dead_letters: int
    oldest_ready_at: datetime | None
    oldest_ready_age: float | None = Field(description="In seconds.")
    completed_5m: int
    completed_per_s: float
    failed_attempts_5m: int
    wait_p50_s: float | None
    run_p50_s: float | None
    depth: int
    max_depth: int | None
    fair: bool


class WholeQueue(Queue):
    """A queue with its settings."""

    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    priority: int | None
    max_attempts: int | None
    timeout_s: float | None
    ageing_rate: float | None
    retry: dict[str, Any]
    max_spec_bytes: int
    audit: str
    assignment: Literal["claim", "manual", "dispatch"]
    hold: bool
    on_lease_expiry: Literal["fail", "block"]
    keep_completed_s: float | None
    keep_cancelled_s: float | None
    keep_dead_s: float | None
    prune_mode: str
    created_at: datetime


class Place(BaseModel):
    """A ready task and its place in the order in which tasks would be claimed."""

    place: int
    id: UUID
    type: str
    priority: int
    effective_priority: float
    since: datetime
    title: str | None
    project: str | None
    shut: str | None


class Order(BaseModel):
    """Ready tasks in the order in which they would be claimed."""

    queue: str
    items: list[Place]


class Stuck(BaseModel):
    """What should move and does not, and why."""

    reason: str
    status: str
    queue: str
    type: str
    tasks: int
    since: datetime | None
    example_id: UUID


class StuckList(BaseModel):
    """What should move and does not, the oldest first."""

    items: list[Stuck]


class Type(BaseModel):
    """A kind of task: its settings, and whether it is claimed; null leaves it to the queue."""

    type: str
    state: str
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    description: str | None
    priority: int | None
    max_attempts: int | None
    timeout_s: float | None
    ageing_rate: float | None
    retry: dict[str, Any]
    gates: list[str]
    breaker: dict[str, Any]
    max_cost_usd: float | None
    max_tokens: int | None
    on_budget: str | None
    validation: list[dict[str, Any]] | None
    report: str | None
    models: list[str] | None
    fallback_models: list[str] | None
