"""What an agent author installs: HTTP only, no database, nothing else of treadle."""

from treadle.client.errors import (
    ClaimLost,
    ClientError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    QueueFull,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from treadle.client.harness import AsyncHarnessClient, HarnessClient
from treadle.client.models import DecisionMessage, TaskMessage
from treadle.client.work import WorkQueue

__all__ = [
    "AsyncHarnessClient",
    "ClaimLost",
    "ClientError",
    "Conflict",
    "DecisionMessage",
    "Forbidden",
    "HarnessClient",
    "InvalidRequest",
    "NotFound",
    "QueueFull",
    "TaskMessage",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "WorkQueue",
]
