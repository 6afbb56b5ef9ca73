"""Treadle: tasks for fleets of agents, kept in the PostgreSQL that you already run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.errors import ClaimLost, InvalidArgument, TaskFailed, TreadleError, Unavailable
    from treadle.handles import Handle
    from treadle.outcomes import CancelTask, FailForGood, RateLimited, RetryAfter
    from treadle.tasks import RetryPolicy, Task
    from treadle.worker.context import Context

__all__ = [
    "CancelTask",
    "ClaimLost",
    "Context",
    "FailForGood",
    "Handle",
    "InvalidArgument",
    "RateLimited",
    "RetryAfter",
    "RetryPolicy",
    "Task",
    "TaskFailed",
    "Treadle",
    "TreadleError",
    "Unavailable",
]

__version__ = "0.1.0"

_HOMES = {
    "treadle.app": ("Treadle",),
    "treadle.errors": (
        "ClaimLost", "InvalidArgument", "TaskFailed", "TreadleError", "Unavailable"
    ),
    "treadle.handles": ("Handle",),
    "treadle.outcomes": ("CancelTask", "FailForGood", "RateLimited", "RetryAfter"),
    "treadle.tasks": ("RetryPolicy", "Task"),
    "treadle.worker.context": ("Context",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import on first use: `treadle --help` must not wait for the database driver."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module 'treadle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
