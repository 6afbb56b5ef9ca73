"""What can be said of a task type, and of one task besides its arguments."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypedDict
from uuid import UUID

from treadle.errors import InvalidArgument


class RetryPolicy(TypedDict, total=False):
    """How failed attempts are retried; what is left out comes from the type, then the queue."""

    strategy: Literal["exponential", "fixed", "immediate"]
    initial_delay_s: float
    multiplier: float
    max_delay_s: float
    jitter: bool
    retry_on: list[str] | None
    no_retry_on: list[str]
    max_rate_limits: int
    poison: bool


class BreakerSettings(TypedDict, total=False):
    """After how many failures in a row a type is kept back, and for how long; 0 is never."""

    threshold: int
    first_probe_s: float
    cooldown_s: float


class ValidatorSettings(TypedDict, total=False):
    """One validator: its name, what it needs, how long it may take."""

    validator: Required[str]
    schema: Mapping[str, Any] | bool
    pattern: str
    name: str
    criteria: str
    timeout_s: float


class TypeSettings(TypedDict, total=False):
    """Settings of a task type."""

    description: str
    priority: int
    max_attempts: int
    timeout_s: float
    ageing_rate: float
    retry: RetryPolicy
    gates: list[str]
    breaker: BreakerSettings
    max_cost_usd: float
    max_tokens: int
    on_budget: Literal["ask", "fail"]
    validation: Sequence[ValidatorSettings | Mapping[str, Any]]
    report: Literal["required", "optional"]
    models: list[str]
    fallback_models: list[str]


class EnqueueOptions(TypedDict, total=False):
    """What can be said of a task besides its spec."""

    queue: str
    key: str
    keys: Sequence[str | None]
    dedupe: bool
    priority: int
    urgency: int
    tier: Literal["critical", "high", "normal", "low", "background"]
    delay: float | timedelta
    run_at: datetime
    deadline_at: datetime
    timeout_s: float
    max_attempts: int
    ageing_rate: float
    retry: RetryPolicy
    capabilities: list[str]
    assigned_agent: str
    hold: bool
    consumer: str
    title: str
    tags: list[str]
    created_by: str
    source: str
    source_job: str
    external_ref: str
    notes: str
    parent_id: UUID
    project_id: UUID
    project: str
    max_cost_usd: float
    max_tokens: int
    on_budget: Literal["ask", "fail"]
    validation: Sequence[ValidatorSettings | Mapping[str, Any]]
    report: Literal["required", "optional"]
    models: list[str]
    fallback_models: list[str]
    concurrency_key: str
    concurrency_limit: int
    gates: list[str]


def make_options(
    options: EnqueueOptions, count: int, define: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any], list[str | None] | None]:
    """Split options into the queue, what goes to SQL as json, and the keys."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    queue = str(given.pop("queue", "default"))
    keys: list[str | None] | None = None
    if "keys" in given:
        keys = list(given.pop("keys"))
    if "key" in given:
        if count != 1:
            raise InvalidArgument(
                f"one key for {count} tasks", hint="Give keys=[…], one for each.", argument="key"
            )
        keys = [given.pop("key")]
    delay = given.pop("delay", None)
    if delay is not None:
        given["delay_s"] = delay.total_seconds() if isinstance(delay, timedelta) else delay
    for name in ("run_at", "deadline_at"):
        moment = given.get(name)
        if isinstance(moment, datetime) and moment.tzinfo is None:
            raise InvalidArgument(
                f"{name} has no time zone", hint="Use datetime.now(tz=UTC) + …", argument=name
            )
    if define is not None:
        given["define"] = {name: value for name, value in define.items() if value is not None}
    return queue, given, keys
