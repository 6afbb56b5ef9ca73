"""Dead letters as they are shown, and what is decided about them."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, model_validator

from treadle.api.v1.fields import Body, Id, Name, Object, Seconds, Text, Usd
from treadle.db.dead_letters import Decision

Resolution = Literal["retry", "cancel", "modify", "escalate"]
MOST_IDS = 1000


class Changes(Body):
    """What is changed before a letter runs again; what is not named stays."""

    spec: Object | None = Field(None, description="Arguments to change; the others stay.")
    set: Object | None = Field(None, description='Single values: {"options.retries": 0}.')
    unset: list[Name] | None = Field(None, max_length=100)
    queue: Name | None = None
    type: Name | None = None
    priority: int | None = Field(None, ge=0, le=100)
    max_attempts: int | None = Field(None, ge=1, le=1000)
    timeout_s: Seconds | None = None
    assigned_agent: Name | None = None
    retry: Object | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    models: list[Name] | None = Field(None, max_length=20)
    validation: list[Object] | None = Field(None, max_length=20)


class Resolve(Body):
    """A decision; `modify` goes with changes, `escalate` with to, a delay with what runs again."""

    resolution: Resolution
    changes: Changes | None = None
    note: Text | None = Field(None, max_length=2000)
    delay_s: float | None = Field(None, ge=0, le=31_536_000)
    to: Text | None = Field(None, min_length=1, max_length=200)

    def decision(self, by: str) -> Decision:
        """As the gateway takes it."""
        word = "modify_and_retry" if self.resolution == "modify" else self.resolution
        changes = self.changes.named() if self.changes else {}
        return Decision(word, changes, by, self.note, self.delay_s, self.to)


class LetterFilter(Body):
    """Which letters are meant; all that is named must hold."""

    group: Name | None = None
    queue: Name | None = None
    type: Name | None = None
    failure_class: Name | None = Field(None, alias="class")
    dead_before: Text | None = Field(None, min_length=1, max_length=100)
    dead_after: Text | None = Field(None, min_length=1, max_length=100)
    poison: bool | None = None
    escalated: bool | None = None

    def filters(self) -> dict[str, Any]:
        """As SQL reads it; a filter without a condition is all open letters."""
        words = {"group": "fingerprint", "class": "failure_class"}
        named = {
            words.get(name, name): value
            for name, value in self.named().items()
            if value is not None
        }
        return named or {"status": "dead_lettered"}


class ResolveMany(Resolve):
    """A decision about letters by their ids, or about all that a filter finds."""

    ids: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    filter: LetterFilter | None = Field(None, description="{} is every open letter.")
    dry_run: bool = Field(False, description="Only count what the filter finds.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or a filter, and not both")
        if self.dry_run and self.filter is None:
            raise ValueError("dry_run goes with a filter, not with ids")
        return self


class Resolved(BaseModel):
    """What became of a letter, and the state of its task now."""

    id: UUID
    task_id: UUID | None
    letter_id: UUID | None
    verdict: Literal["retried", "cancelled", "escalated", "already", "refused", "unknown"]
    status: str | None
    why: str | None


class LetterCount(BaseModel):
    """So many letters of one kind, and what became of them."""

    queue: str
    type: str
    failure_class: str
    fingerprint: str
    verdict: str
    why: str | None
    letters: int


class ResolvedMany(BaseModel):
    """With ids what became of each, with a filter how many; `done` counts those decided about."""

    dry_run: bool
    done: int
    items: list[Resolved] | None = None
    counts: list[LetterCount] | None = None


class Attempt(BaseModel):
    """An attempt that led to a letter."""

    attempt: int
    agent: str | None
    outcome: str
    failure_class: str | None = Field(alias="class")
    reason: str | None
    error: str | None
    model: str | None
    duration_s: float | None
    cost_usd: float | None
    ended_at: datetime


class Letter(BaseModel):
    """A task that gave up, and what was decided about it."""

    id: UUID
    task_id: UUID
    queue: str
    type: str
    title: str | None
    dag_id: UUID | None
    failure_class: str = Field(alias="class")
    reason: str | None
    poison_pill: bool
    attempts: int
    total_cost_usd: float
    dead_lettered_at: datetime
    reviewed: bool
    resolution: str | None
    resolved_at: datetime | None
    reviewer: str | None
    note: str | None
    spec: Any
    history: list[Attempt] | None
    fingerprint: str
    about: str
    escalated_at: datetime | None
    escalated_to: str | None


class DecisionMade(BaseModel):
    """A decision about a letter; none is ever removed."""

    id: int
    at: datetime
    decision: str
    actor: str
    note: str | None
    changes: Any
    delay_s: float | None
    escalated_to: str | None
    letter_id: UUID
    task_id: UUID
    queue: str
    type: str
    failure_class: str = Field(alias="class")
    fingerprint: str
    about: str


class WholeLetter(Letter):
    """A letter with every decision about its task."""

    decisions: list[DecisionMade]


class Group(BaseModel):
    """Open letters with one class and one kind of error."""

    fingerprint: str
    failure_class: str = Field(alias="class")
    about: str
    letters: int
    poison_pills: int
    escalated: int
    queues: list[str]
    types: list[str]
    agents: list[str | None] | None
    attempts: int
    total_cost_usd: float
    first_at: datetime
    last_at: datetime
    sample_task: UUID
    sample_reason: str | None
