"""What people ask when nothing moves: why a task waits, and who is next in a queue."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import UUID

Record = dict[str, Any]


class Explanations(ABC):
    """Reads what the server says about a task or a queue; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[Record]:
        """Run a select and return its rows by name."""

    async def why(self, task_id: UUID) -> list[Record]:
        """Every reason why a task is not running now, the weightiest first."""
        return await self.rows(
            "select sentence, reason, until, detail from treadle.why(%(id)s)", {"id": task_id}
        )

    async def queue(self, name: str) -> Record:
        """A queue with its settings."""
        found = await self.rows("select * from treadle.read_queue(%(name)s)", {"name": name})
        return found[0]

    async def claim_order(self, queue: str, limit: int) -> list[Record]:
        """The ready tasks of a queue in the order in which they would be claimed."""
        return await self.rows(
            "select * from treadle.claim_order(%(queue)s, %(limit)s)",
            {"queue": queue, "limit": limit},
        )
