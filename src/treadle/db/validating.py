"""The calls about validation: the state, and what attempts leave for later ones."""

from collections.abc import Sequence
from uuid import UUID

from treadle.db.calls import Caller


class ValidationCalls(Caller):
    """Tasks whose output is being checked, and notes."""

    async def validate_tasks(self, claims: Sequence[tuple[UUID, UUID]]) -> dict[UUID, str]:
        """Say that outputs are being checked; whether each claim still holds."""
        rows = await self._call(
            "select id, verdict from treadle.validate_tasks(%b, %b)",
            [claim[0] for claim in claims],
            [claim[1] for claim in claims],
        )
        return {row[0]: row[1] for row in rows}

    async def add_note(self, task_id: UUID, token: UUID, note: str) -> None:
        await self._call("select treadle.add_note(%b, %b, %b)", task_id, token, note)
