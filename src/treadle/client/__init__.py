"""The HTTP client for agents: it needs no database and imports nothing else of treadle."""

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
from treadle.client.harness import (
    AsyncHarnessClient,
    DecisionMessage,
    HarnessClient,
    TaskMessage,
)
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
