"""What travels between the database and the rest: plain, typed, immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from typing_extensions import TypedDict

TERMINAL = frozenset({"completed", "dead_lettered", "cancelled"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that was handed to this worker: the token, and the columns of `claim_tasks`."""

    token: UUID = field(repr=False)
    id: UUID
    queue: str
    type: str
    spec: dict[str, Any] = field(repr=False)
    attempt: int
    max_attempts: int
    timeout_s: float | None
    priority: int
    lease_until: datetime
    created_at: datetime
    deadline_at: datetime | None
    title: str | None
    tags: list[str] | None
    parent_id: UUID | None
    dag_id: UUID | None
    project_id: UUID | None
    idempotency_key: str | None
    previous: list[dict[str, Any]] | None = field(repr=False)
    name: str | None
    steps: list[dict[str, Any]] | None = field(repr=False)
    problem: str | None
    max_cost_usd: Decimal | None
    cost_usd: Decimal
    gates: list[str]
    models: list[str] = field(default_factory=list)
    validation: list[dict[str, Any]] | None = None
    report: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What a task has done and need not do again; `seq` is the order in which it was saved."""

    name: str
    kind: str
    seq: int
    output: Any
    saved_at: datetime
    cost_usd: float = 0.0
    input_hash: str | None = None
    input: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a question: the value, who gave it and why; `status` says if it expired."""

    value: Any
    by: str | None
    note: str | None
    at: datetime
    status: str

    @property
    def approved(self) -> bool:
        """Whether the answer is `approve`."""
        return bool(self.value == "approve")

    def __bool__(self) -> bool:
        """Refuse: the answer `reject` must not pass for a yes."""
        raise TypeError("an Answer is neither true nor false: use .approved or .value")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A task that was put on a queue, or the one that already had its key."""

    id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ends without a result, and what should follow.

    Without a class, SQL finds one in the text; `key` is the gate that a rate limit closes, and
    `feedback` what validators had against the output.
    """

    error: str
    failure_class: str | None = "error"
    action: str | None = None
    retry_after_s: float | None = None
    key: str | None = None
    feedback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What became of a task whose attempt failed."""

    id: UUID
    verdict: str
    retry_at: datetime | None
    failure_class: str | None


@dataclass(frozen=True, slots=True)
class Reaped:
    """A claim that ran out; `problem` is set when its row could not be moved."""

    id: UUID
    reason: str
    status: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Promoted:
    """A task that fell due; `problem` is set when its row could not be moved."""

    id: UUID
    problem: str | None


@dataclass(frozen=True, slots=True)
class BulkCount:
    """So many tasks of one kind, and what became of them when many were decided about at once."""

    queue: str
    type: str
    status: str
    verdict: str
    why: str | None
    tasks: int


@dataclass(frozen=True, slots=True)
class ExpiredWait:
    """A wait whose time was up; `problem` is set when its row could not be moved."""

    id: UUID
    problem: str | None


@dataclass(frozen=True, slots=True)
class OpenedWait:
    """A wait as a task finds it: `answer` is there once it has ended."""

    id: UUID | None
    status: str
    answer: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How an awaited task ended."""

    id: UUID
    status: str
    output: Any
    failure_class: str | None
    failure_reason: str | None


@dataclass(frozen=True, slots=True)
class TakenResult:
    """A result that was handed to its consumer."""

    id: UUID
    queue: str
    type: str
    spec: dict[str, Any] = field(repr=False)
    output: Any
    decision_report: Any
    completed_by: str | None
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """How an agent registers."""

    id: str
    type: str = "worker"
    capabilities: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=lambda: ["default"])
    task_types: list[str] | None = None
    max_concurrent_tasks: int | None = None
    heartbeat_s: float = 30.0
    claim_ttl_s: float = 60.0
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DagState:
    """How far a DAG is; `failed` means that a task gave up and waits for a person."""

    id: UUID
    name: str
    status: str
    tasks: int
    completed: int
    cancelled: int
    dead_lettered: int
    cost_usd: Decimal | None
    duration_s: float | None
    open_waits: int


@dataclass(frozen=True, slots=True)
class SpendState:
    """What a task has cost and may still spend, of its own limit and of its tightest budget."""

    cost_usd: Decimal
    max_cost_usd: Decimal | None
    left_usd: Decimal | None
    # May it go on? ok, or what to do now: ask or fail.
    verdict: str
    reason: str | None
    wait_id: UUID | None = None


class Artifact(TypedDict):
    """A file of a task, as its maker gets it and as an input gives it to the next task."""

    id: str
    name: str
    uri: str
    media_type: str | None
    bytes: int | None
    sha256: str | None


class ListedArtifact(Artifact):
    """A file of a task and the attempt that made it."""

    attempt: int | None


@dataclass(frozen=True, slots=True)
class RemovableArtifact:
    """A file to delete: of a task that is gone, or never finished."""

    id: UUID
    key: str
    uri: str
    name: str
    task_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetReview:
    """A task that a budget has no money for: asked or dead_lettered; or why it could not be."""

    id: UUID
    verdict: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `place` is where it stands in the order of readers."""

    place: str
    id: int
    at: datetime
    kind: str
    task_id: UUID | None
    dag_id: UUID | None
    queue: str | None
    actor: str | None
    key: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class TriggerRun:
    """What a trigger made of an event, or why it could not."""

    id: UUID
    event_id: int
    task_id: UUID | None
    dag_id: UUID | None
    problem: str | None
