"""The fields of a task: what can be set, what is shown, and their bounds. One line per field.

Everything else that names fields follows from these classes: the options of `enqueue`, the bodies
of the HTTP API, the options of the command line, the columns of lists, the view
`treadle.task_fields` (which the SQL checks use) and docs/reference/task-fields.md. The class says
where a field can be set: a queue and a type have defaults for their tasks, a node is a task of a
DAG. Importing this module must stay cheap: no pydantic, no typer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    Required,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

Kind = Literal["integer", "number", "text", "names", "time", "uuid", "boolean", "json", "word"]
Status = Literal[
    "created",
    "pending",
    "ready",
    "claimed",
    "running",
    "validating",
    "blocked",
    "retrying",
    "completed",
    "dead_lettered",
    "cancelled",
]
Tier = Literal["critical", "high", "normal", "low", "background"]
OnBudget = Literal["ask", "fail"]
Report = Literal["required", "optional"]
OutputType = Literal["code", "markdown", "json", "artifact"]
Json = dict[str, Any]
# In Python: handles, nodes and ids, and `optional(…)` around them. In JSON: ids, and objects with
# `task` and `optional`.
After = Sequence[Any]
# In Python: outputs of handles and nodes. Everywhere: references like `task:<id>:output`.
Inputs = Mapping[str, Any]


# edit: it may change when a dead letter is retried or a task is forked. list: lists show it, not
# only the details of one task. hidden: it is never shown. always: it is not null where it is shown.
# option: commands have an option for it; `tasks enqueue --set` takes the others.
FLAGS = frozenset({"edit", "list", "hidden", "always", "option"})


@dataclass(frozen=True, slots=True)
class Field:
    """The properties of a field besides its name and type."""

    help: str
    low: float | None = None  # of a value, of the characters of a text, of the entries of a list
    high: float | None = None
    flags: str = ""  # words of FLAGS
    option: str = ""  # option of commands, where it is not called like the field
    wire: str = ""  # name in SQL and HTTP, where it is another one
    name: str = ""  # name and type are filled in by `fields_of`
    type: Any = None

    def has(self, flag: str) -> bool:
        """Whether it has this flag."""
        return flag in self.flags.split()

    @property
    def kind(self) -> Kind:
        """The kind of its values, as in treadle.task_fields."""
        return _kind(self.type)

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words; empty if the field is not an enumeration."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


class RetryPolicy(TypedDict, total=False):
    """How failed attempts are retried; what is left out comes from the type, then the queue."""

    strategy: Annotated[Literal["exponential", "fixed", "immediate"], Field("How the delay grows.")]
    initial_delay_s: Annotated[float, Field("First delay, in seconds.", 0, 2_592_000)]
    multiplier: Annotated[float, Field("Growth of the delay from retry to retry.", 1, 100)]
    max_delay_s: Annotated[float, Field("Longest delay, in seconds.", 0, 2_592_000)]
    jitter: Annotated[bool, Field("Whether delays vary at random.")]
    retry_on: Annotated[list[str] | None, Field("Failure classes to retry; null: the usual ones.")]
    no_retry_on: Annotated[list[str], Field("Failure classes not to retry.")]
    max_rate_limits: Annotated[int, Field("Rate limits that do not count as attempts.", 0, 10_000)]
    poison: Annotated[bool, Field("Whether a poison pill is dead-lettered early.")]


class BreakerSettings(TypedDict, total=False):
    """After how many failures in a row a type is kept back, and for how long; 0 means never."""

    threshold: Annotated[int, Field("Failures in a row that stop the type; 0: none.", 0, 1_000_000)]
    first_probe_s: Annotated[float, Field("Seconds before the first probe.", 0.001, 2_678_400)]
    cooldown_s: Annotated[
        float, Field("Seconds until the next probe after a failed one.", 0.001, 2_678_400)
    ]


class ValidatorSettings(TypedDict, total=False):
    """One validator: its name, its settings and its timeout."""

    validator: Required[str]
    schema: Mapping[str, Any] | bool
    pattern: str
    name: str
    criteria: str
    timeout_s: float


class TaskContent(TypedDict, total=False):
    """The content of a task; passed as separate arguments, not as options."""

    type: Annotated[
        str, Field("Type of the task, which names the handler.", 1, 100, "edit list always")
    ]
    spec: Annotated[Json, Field("Arguments of the handler.", flags="edit always")]


class QueueDefaults(TypedDict, total=False):
    """Fields that a queue, a type, a node and a task can set."""

    priority: Annotated[
        int, Field("Priority: 0 runs first, 100 last.", 0, 100, "edit list always option")
    ]
    max_attempts: Annotated[
        int, Field("Attempts before the task is dead-lettered.", 1, 1000, "edit list always option")
    ]
    timeout_s: Annotated[
        float,
        Field(
            "Longest run of one attempt, in seconds.",
            0.001,
            31_536_000,
            "edit option",
            option="--timeout",
        ),
    ]
    ageing_rate: Annotated[
        float, Field("Priority points gained per minute of waiting.", 0, 1000, "edit always option")
    ]
    retry: Annotated[
        RetryPolicy, Field("How failed attempts are retried.", flags="edit always option")
    ]


class TypeDefaults(QueueDefaults, total=False):
    """Fields that a type, a node and a task can set."""

    gates: Annotated[
        list[str],
        Field(
            "Gates that must be open before the task starts.",
            0,
            10,
            "always option",
            option="--gate",
        ),
    ]
    max_cost_usd: Annotated[
        float, Field("Most that the task may cost, in US dollars.", 0, 99_999_999, "edit option")
    ]
    max_tokens: Annotated[int, Field("Most tokens that the task may use.", 0, 2**53, "edit option")]
    on_budget: Annotated[
        OnBudget,
        Field(
            "Whether to ask a person or to fail when the money of the task is spent.",
            flags="edit option",
        ),
    ]
    validation: Annotated[
        Sequence[ValidatorSettings | Mapping[str, Any]],
        Field("Validators that the output must pass.", 0, 20, "edit option"),
    ]
    report: Annotated[
        Report,
        Field(
            "Whether the agent must report its decisions and their reasons.",
            flags="edit always option",
        ),
    ]
    output_type: Annotated[
        OutputType, Field("Kind of the output, which the worker checks.", flags="edit option")
    ]
    models: Annotated[
        list[str],
        Field("Preferred models, best first.", 0, 20, "edit option", option="--model"),
    ]
    fallback_models: Annotated[
        list[str],
        Field("Models from the third attempt on.", 0, 20, "edit option", option="--fallback-model"),
    ]


class TypeSettings(TypeDefaults, total=False):
    """Settings of a task type: defaults for its tasks, and settings of the type itself."""

    description: Annotated[str, Field("What tasks of this type do.", 0, 1000, "option")]
    breaker: Annotated[
        BreakerSettings,
        Field("When failures stop the type: threshold, first_probe_s, cooldown_s.", flags="option"),
    ]


class QueueSettings(QueueDefaults, total=False):
    """Settings of a queue: defaults for its tasks, and settings of the queue itself."""

    max_depth: Annotated[
        int, Field("Waiting tasks beyond which more are rejected; null: no limit.", 1, 2**31 - 1)
    ]
    max_spec_bytes: Annotated[int, Field("Largest arguments of a task, in bytes.", 1, 2**28)]
    fair: Annotated[bool, Field("Whether projects take turns, weighted by their shares.")]
    hold: Annotated[bool, Field("Whether new tasks are kept back until they are released.")]
    audit: Annotated[
        Literal["compact", "full"],
        Field("Whether events are written for important transitions or for all."),
    ]
    keep_completed_s: Annotated[
        float, Field("Seconds until completed tasks are pruned; null: never.", 0, 3_153_600_000)
    ]
    keep_cancelled_s: Annotated[
        float, Field("Seconds until cancelled tasks are pruned; null: never.", 0, 3_153_600_000)
    ]
    keep_dead_s: Annotated[
        float,
        Field("Seconds until undecided dead letters are pruned; null: never.", 0, 3_153_600_000),
    ]
    prune_mode: Annotated[
        Literal["archive", "drop"], Field("Whether pruned tasks are archived or deleted.")
    ]


class TaskFilter(TypedDict, total=False):
    """A filter of tasks, which must match all keys that are given."""

    queue: Annotated[str, Field("Name of the queue.")]
    type: Annotated[str, Field("Type of the task.")]
    status: Annotated[Status | list[Status], Field("State, or a list of states.")]
    tag: Annotated[str, Field("One of the tags of the task.")]
    dag_id: Annotated[UUID, Field("DAG that the task belongs to.")]
    project_id: Annotated[UUID, Field("Project that the task belongs to.")]
    agent: Annotated[str, Field("Agent that has the task, or had it last.")]
    failure_class: Annotated[str, Field("Class of the last failure.")]
    reason: Annotated[str, Field("Part of the reason of the last failure.")]
    created_before: Annotated[str, Field("A time, or an age such as 90s, 15m, 2h or 7d.")]
    created_after: Annotated[str, Field("A time, or an age such as 90s, 15m, 2h or 7d.")]
    created_by: Annotated[str, Field("Name of the creator.")]
    source: Annotated[str, Field("System that the task comes from.")]


class LetterFilter(TypedDict, total=False):
    """Keys that a filter of dead letters has in addition to those of a task filter."""

    fingerprint: Annotated[str, Field("Group of the dead letter: letters with the same error.")]
    dead_before: Annotated[str, Field("A time, or an age such as 90s, 15m, 2h or 7d.")]
    dead_after: Annotated[str, Field("A time, or an age such as 90s, 15m, 2h or 7d.")]
    poison: Annotated[bool, Field("Whether the task seems to crash its workers.")]
    escalated: Annotated[bool, Field("Whether the dead letter was escalated.")]


class NodeOptions(TypeDefaults, total=False):
    """Fields that a task can set, in a DAG or not."""

    queue: Annotated[str, Field("Queue that the task waits in.", 1, 48, "edit list always option")]
    urgency: Annotated[
        int,
        Field("Urgency instead of a priority: 10 is most urgent, 1 least.", 1, 10, "hidden option"),
    ]
    tier: Annotated[Tier, Field("Tier instead of a priority.", flags="hidden option")]
    run_at: Annotated[
        datetime, Field("Earliest time to run, within ten years.", flags="list option")
    ]
    delay: Annotated[
        float | timedelta,
        Field(
            "Delay before the task may run, in seconds.",
            0,
            315_360_000,
            "hidden option",
            wire="delay_s",
        ),
    ]
    deadline_at: Annotated[
        datetime,
        Field("Time by which the task should be done.", flags="list option", option="--deadline"),
    ]
    capabilities: Annotated[
        list[str], Field("Capabilities that the agent must have.", 0, 50, "edit always")
    ]
    assigned_agent: Annotated[
        str, Field("The only agent that may claim the task.", 1, 200, "edit list")
    ]
    consumer: Annotated[str, Field("Name of the consumer that takes the result.", 1, 200)]
    title: Annotated[str, Field("Title, for people.", 0, 1000, "edit list option")]
    tags: Annotated[list[str], Field("Tags, for filters.", 0, 50, "list")]
    source: Annotated[str, Field("System that the task comes from.", 1, 200)]
    source_job: Annotated[
        str, Field("Job of the source system, such as the name of a schedule.", 1, 200)
    ]
    external_ref: Annotated[
        str, Field("Reference to something outside, such as a ticket.", 0, 1000)
    ]
    notes: Annotated[str, Field("Notes, for people.", 0, 20_000)]
    project: Annotated[
        str, Field("Name of the project that the task belongs to.", 1, 200, "hidden option")
    ]
    project_id: Annotated[UUID, Field("Id of the project that the task belongs to.", flags="list")]
    concurrency_key: Annotated[
        str, Field("Concurrency key: tasks with the same key take turns.", 1, 200, "option")
    ]
    concurrency_limit: Annotated[
        int,
        Field("Tasks of the concurrency key that may run at once.", 1, 1_000_000, "hidden option"),
    ]
    key: Annotated[
        str,
        Field(
            "Idempotency key: reusing it returns the existing task.",
            1,
            200,
            "list option",
            wire="idempotency_key",
        ),
    ]
    after: Annotated[After, Field("Tasks that must be completed first.", flags="hidden option")]
    inputs: Annotated[
        Inputs,
        Field(
            "Arguments taken from the outputs and files of other tasks.",
            flags="option",
            option="--input",
        ),
    ]


class EnqueueOptions(NodeOptions, total=False):
    """All options of `enqueue`."""

    dedupe: Annotated[
        bool, Field("Make the idempotency key from type and arguments.", flags="hidden option")
    ]
    hold: Annotated[bool, Field("Keep the task back until it is released.", flags="hidden")]
    parent_id: Annotated[UUID, Field("Parent of a subtask.", flags="list")]
    created_by: Annotated[str, Field("Name of the creator.", 1, 200, "list")]


class TaskIdentity(TypedDict):
    """The identity of a task."""

    id: Annotated[UUID, Field("Id of the task.", flags="list always")]
    name: Annotated[str, Field("Name of the task in its DAG.", flags="list")]
    status: Annotated[Status, Field("State of the task.", flags="list always")]


class TaskState(TypedDict):
    """Fields that the engine writes."""

    effective_priority: Annotated[
        float, Field("Priority after ageing and deadline.", flags="list always")
    ]
    critical_path: Annotated[
        int, Field("Length of the longest chain of tasks that depend on the task, up to 30.")
    ]
    output: Annotated[Any, Field("What the handler returned.")]
    artifacts: Annotated[list[Json], Field("Files of the task that can be used.")]
    decision_report: Annotated[Any, Field("What the agent decided, and why.")]
    outcome: Annotated[str, Field("How the task ended.")]
    failure_class: Annotated[str, Field("Class of the last failure.", flags="list")]
    failure_reason: Annotated[str, Field("Reason of the last failure.", flags="list")]
    poison_pill: Annotated[
        bool, Field("Whether the task seems to crash its workers.", flags="always")
    ]
    attempt_notes: Annotated[list[Json], Field("Notes that attempts left for later attempts.")]
    attempt: Annotated[int, Field("Attempts so far.", flags="list always")]
    rate_limits: Annotated[
        int, Field("Attempts that did not count because of a rate limit.", flags="always")
    ]
    retry_at: Annotated[datetime, Field("When the task is retried.", flags="list")]
    agent_id: Annotated[str, Field("Agent that holds the claim.", flags="list")]
    claimed_at: Annotated[datetime, Field("When the task was claimed.")]
    started_at: Annotated[datetime, Field("When the handler started.", flags="list")]
    heartbeat_at: Annotated[datetime, Field("Last heartbeat of the agent.")]
    lease_until: Annotated[datetime, Field("When the reaper takes the task back.")]
    progress: Annotated[Any, Field("Progress that the handler reports.", flags="list")]
    slot: Annotated[str, Field("State of the concurrency slot: waiting or held.")]
    depends_on: Annotated[list[UUID], Field("Tasks that the task depends on.", flags="always")]
    blocked_by: Annotated[
        list[UUID], Field("Dependencies that the task still waits for.", flags="always")
    ]
    forked_from: Annotated[UUID, Field("Task whose first steps were copied.")]
    dag_id: Annotated[UUID, Field("DAG that the task belongs to.", flags="list")]
    consumed_at: Annotated[datetime, Field("When the result was taken.")]
    created_at: Annotated[datetime, Field("When the task was enqueued.", flags="list always")]
    completed_at: Annotated[
        datetime, Field("When the task ended, whatever the outcome.", flags="list")
    ]
    completed_by: Annotated[str, Field("Agent that completed the task.")]
    wait_s: Annotated[
        float, Field("Time so far in which no handler ran, in seconds.", flags="always")
    ]
    run_s: Annotated[
        float, Field("Time so far in which a handler ran, over all attempts, in seconds.")
    ]
    cost_usd: Annotated[float, Field("Cost so far, in US dollars.", flags="list always")]
    reserved_usd: Annotated[
        float, Field("Money reserved for the current attempt, in US dollars.", flags="always")
    ]
    budget_id: Annotated[int, Field("Budget that the task waits for.")]
    input_tokens: Annotated[int, Field("Input tokens used so far.", flags="always")]
    output_tokens: Annotated[int, Field("Output tokens used so far.", flags="always")]


@cache
def fields_of(*sources: type) -> tuple[Field, ...]:
    """The fields of these classes, in order."""
    found = []
    for source in sources:
        for name, hint in get_type_hints(source, include_extras=True).items():
            [meta] = (each for each in hint.__metadata__ if isinstance(each, Field))
            found.append(replace(meta, name=name, type=hint.__origin__, wire=meta.wire or name))
    return tuple(found)


def settable_fields() -> tuple[Field, ...]:
    """The fields that a caller can set."""
    return fields_of(TaskContent, EnqueueOptions)


def editable_fields() -> tuple[Field, ...]:
    """The fields that may change when a dead letter is retried or a task is forked."""
    return tuple(field for field in settable_fields() if field.has("edit"))


def priority_fields() -> tuple[Field, ...]:
    """The three scales of a priority; a caller gives one of them."""
    return tuple(
        field for field in settable_fields() if field.name in ("priority", "tier", "urgency")
    )


def engine_fields() -> tuple[Field, ...]:
    """The fields that only the engine writes."""
    return fields_of(TaskIdentity, TaskState)


def detail_fields() -> tuple[Field, ...]:
    """The fields in the details of a task: the columns of treadle.task_details."""
    every = fields_of(TaskIdentity, TaskContent, EnqueueOptions, TaskState)
    return tuple(field for field in every if not field.has("hidden"))


def list_fields() -> tuple[Field, ...]:
    """The fields in lists of tasks."""
    return tuple(field for field in detail_fields() if field.has("list"))


def uses_of(field: Field) -> list[str]:
    """Where a field can be set: queue, type, node, task, and edit for a retry or a fork."""
    uses = [
        scope
        for scope, sources in _SCOPES.items()
        if any(field.name in source.__annotations__ for source in sources)
    ]
    return [*uses, "edit"] if field.has("edit") else uses


_SCOPES: dict[str, tuple[type, ...]] = {
    "queue": (QueueDefaults,),
    "type": (TypeDefaults,),
    "node": (TaskContent, NodeOptions),
    "task": (TaskContent, EnqueueOptions),
}


def _kind(hint: Any) -> Kind:
    origin = get_origin(hint)
    if origin is Literal:
        return "word"
    if hint in (list[str], list[str] | None):
        return "names"
    plain: dict[Any, Kind] = {
        int: "integer",
        float: "number",
        float | timedelta: "number",
        str: "text",
        datetime: "time",
        UUID: "uuid",
        bool: "boolean",
    }
    return plain.get(hint, "json")
