"""The data types that the database layer returns and takes, and the documents of agents.

An agent gets a `Brief` and returns a `DecisionReport`. A report needs at least a summary and a
confidence; SQL checks the same for every client. A type may use a subclass with more fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from typing_extensions import TypedDict

from treadle.masking import excerpt_name
from treadle.settings import CLAIM_TTL_S, HEARTBEAT_S

TERMINAL = frozenset({"completed", "dead_lettered", "cancelled"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed task: the claim token and the columns of `claim_tasks`."""

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
    """A saved step of a task; `seq` is the order in which steps were saved."""

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
    """The answer to a wait: the value, the person (`by`) and a note; `status` may be `expired`."""

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
        """Raise TypeError: an answer `reject` must not count as true."""
        raise TypeError("an Answer has no truth value: use .approved or .value")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A new task, or the existing one with the same idempotency key (`created` is false)."""

    id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, and what happens next.

    Without a class, SQL derives one from the error text. `key` is the gate that a rate limit
    closes, and `feedback` has the messages of validators.
    """

    error: str
    failure_class: str | None = "error"
    action: str | None = None
    retry_after_s: float | None = None
    key: str | None = None
    feedback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The state of a task after a failed attempt."""

    id: UUID
    verdict: str
    retry_at: datetime | None
    failure_class: str | None


@dataclass(frozen=True, slots=True)
class Reaped:
    """An expired claim; `problem` is set if its row could not be processed."""

    id: UUID
    reason: str
    status: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Promoted:
    """A due task; `problem` is set if its row could not be processed."""

    id: UUID
    problem: str | None


@dataclass(frozen=True, slots=True)
class BulkCount:
    """The number of tasks with the same queue, type, status and verdict in a bulk action."""

    queue: str
    type: str
    status: str
    verdict: str
    why: str | None
    tasks: int


@dataclass(frozen=True, slots=True)
class Prioritised:
    """What became of a task whose priority was to change, and the priority that it has now."""

    id: UUID
    verdict: str
    priority: int | None


@dataclass(frozen=True, slots=True)
class ExpiredWait:
    """An expired wait; `problem` is set if its row could not be processed."""

    id: UUID
    problem: str | None


@dataclass(frozen=True, slots=True)
class OpenedWait:
    """The state of a wait; `answer` is set once it has ended."""

    id: UUID | None
    status: str
    answer: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of an awaited task."""

    id: UUID
    status: str
    output: Any
    failure_class: str | None
    failure_reason: str | None


@dataclass(frozen=True, slots=True)
class TakenResult:
    """A result that a consumer has taken."""

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
    """The properties that an agent registers with."""

    id: str
    type: str = "worker"
    capabilities: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=lambda: ["default"])
    task_types: list[str] | None = None
    max_concurrent_tasks: int | None = None
    heartbeat_s: float = HEARTBEAT_S
    claim_ttl_s: float = CLAIM_TTL_S
    # None leaves a budget that the agent has as it is.
    budget_usd: float | None = None
    claims_ahead: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DagState:
    """The progress of a DAG; `failed` means that a task is dead-lettered and needs a decision."""

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
    """What a task has cost and may still spend, by its own limit and its budgets."""

    cost_usd: Decimal
    max_cost_usd: Decimal | None
    left_usd: Decimal | None
    # ok, ask or fail.
    verdict: str
    reason: str | None
    wait_id: UUID | None = None


class Artifact(TypedDict):
    """A file of a task, as `put` returns it and as another task gets it as an input."""

    id: str
    name: str
    uri: str
    media_type: str | None
    bytes: int | None
    sha256: str | None


class ListedArtifact(Artifact):
    """A file of a task and the attempt that created it."""

    attempt: int | None


@dataclass(frozen=True, slots=True)
class RemovableArtifact:
    """A file to delete: it is incomplete, or its task was removed."""

    id: UUID
    key: str
    uri: str
    name: str
    task_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetReview:
    """A task whose budget is exhausted: `asked` or `dead_lettered`, or the problem."""

    id: UUID
    verdict: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """An event; `place` is its position in the order in which readers get events."""

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
    """The task or DAG that a trigger created for an event, or the problem."""

    id: UUID
    event_id: int
    task_id: UUID | None
    dag_id: UUID | None
    problem: str | None


Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Decision(BaseModel):
    """One decision: what was chosen, among which options, and why."""

    model_config = ConfigDict(extra="allow")

    decision: Words
    reason: Words
    options: list[str] = Field(default_factory=list)
    reversible: bool | None = None


class DecisionReport(BaseModel):
    """What an agent did and decided, for its reviewers."""

    model_config = ConfigDict(extra="allow")

    summary: Words
    confidence: float = Field(ge=0, le=1)
    goal: str | None = None
    decisions: list[Decision] = Field(default_factory=list)
    assumptions: list[str] = Field(default_factory=list)
    evidence: list[str] = Field(default_factory=list)
    risks: list[str] = Field(default_factory=list)
    follow_ups: list[str] = Field(default_factory=list)


def problems_of(error: ValidationError) -> list[str]:
    """Describe what is wrong with a report, one line for each field."""
    return [
        f"decision report: {_place(item['loc'])}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False)
    ]


def _place(location: Iterable[int | str]) -> str:
    return ".".join(excerpt_name(str(part)) for part in location) or "all"


def described(report: Mapping[str, Any]) -> str:
    """Return a stored report as text."""
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    confidence = report.get("confidence")
    sure = (
        f"{confidence:.0%} sure" if isinstance(confidence, (int, float)) else "confidence unknown"
    )
    yield f"{report.get('summary')} ({sure})"
    if report.get("goal"):
        yield f"goal: {report['goal']}"
    for each in _list(report.get("decisions")):
        if isinstance(each, Mapping):
            among = [str(option) for option in _list(each.get("options"))]
            of = f" (of {', '.join(among)})" if among else ""
            last = " (cannot be undone)" if each.get("reversible") is False else ""
            yield f"decided: {each.get('decision')}{of}: {each.get('reason')}{last}"
    for name in ("assumptions", "evidence", "risks", "follow_ups"):
        for each in _list(report.get(name)):
            yield f"{name.replace('_', ' ')}: {each}"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class Brief(BaseModel):
    """Work for an agent; a handler with a parameter `brief: Brief` gets it validated.

    `await implement.enqueue(brief=Brief(action="implement", target="src/auth.py"))`
    """

    model_config = ConfigDict(extra="forbid")

    action: str = Field(min_length=1, max_length=200)
    target: str | None = None
    params: dict[str, Any] = {}
    goal: str | None = None
    constraints: list[str] = []
    context: dict[str, Any] = {}
