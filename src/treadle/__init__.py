"""Treadle: tasks for fleets of agents, kept in the PostgreSQL that you already run."""

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
