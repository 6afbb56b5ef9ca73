"""Treadle: tasks for fleets of agents, stored in your own PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.errors import (
        BudgetExceeded,
        ClaimLost,
        InvalidArgument,
        QueueFull,
        StepConflict,
        TaskFailed,
        TreadleError,
        Unavailable,
        WaitExpired,
    )
    from treadle.fields import RetryPolicy
    from treadle.models import Answer, Artifact, Brief, DagState, Decision, DecisionReport, Step
    from treadle.producer.dag import Dag, DagHandle, Node, OpenDag
    from treadle.producer.handle import Handle
    from treadle.producer.task import Task
    from treadle.worker.context import Context
    from treadle.worker.outcomes import (
        CancelTask,
        FailPermanently,
        InvalidOutput,
        RateLimited,
        RetryAfter,
        Suspended,
    )
    from treadle.worker.references import optional

__all__ = [
    "Answer",
    "Artifact",
    "Brief",
    "BudgetExceeded",
    "CancelTask",
    "ClaimLost",
    "Context",
    "Dag",
    "DagHandle",
    "DagState",
    "Decision",
    "DecisionReport",
    "FailPermanently",
    "Handle",
    "InvalidArgument",
    "InvalidOutput",
    "Node",
    "OpenDag",
    "QueueFull",
    "RateLimited",
    "RetryAfter",
    "RetryPolicy",
    "Step",
    "StepConflict",
    "Suspended",
    "Task",
    "TaskFailed",
    "Treadle",
    "TreadleError",
    "Unavailable",
    "WaitExpired",
    "optional",
]

__version__ = "0.1.0"

_HOMES = {
    "treadle.app": ("Treadle",),
    "treadle.errors": (
        "BudgetExceeded", "ClaimLost", "InvalidArgument", "QueueFull", "StepConflict", "TaskFailed",
        "TreadleError", "Unavailable", "WaitExpired",
    ),
    "treadle.fields": ("RetryPolicy",),
    "treadle.models": (
        "Answer", "Artifact", "Brief", "DagState", "Decision", "DecisionReport", "Step"
    ),
    "treadle.producer.dag": ("Dag", "DagHandle", "Node", "OpenDag"),
    "treadle.producer.handle": ("Handle",),
    "treadle.producer.task": ("Task",),
    "treadle.worker.context": ("Context",),
    "treadle.worker.outcomes": (
        "CancelTask", "FailPermanently", "InvalidOutput", "RateLimited", "RetryAfter", "Suspended"
    ),
    "treadle.worker.references": ("optional",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that `treadle --help` does not load the database driver."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module 'treadle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
