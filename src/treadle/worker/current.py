"""Which task the code that now runs belongs to; known in threads and in tasks it starts, too."""

from contextvars import ContextVar
from uuid import UUID

task_id: ContextVar[UUID | None] = ContextVar("task_id", default=None)
