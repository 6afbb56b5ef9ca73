"""Access tokens of the HTTP API; reached as `db.tokens`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.json import encode


@dataclass(frozen=True)
class Token:
    """A stored token; it is valid for a caller whose secret has this hash."""

    name: str
    secret_hash: bytes = field(repr=False)
    scopes: list[str]
    queues: list[str] | None
    agent: str | None
    project_id: UUID | None
    # The current name of the project.
    project: str | None
    status: str
    # Whether a use was recorded within the last minute.
    used: bool


class Tokens:
    """Create, revoke, find and list tokens."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(self, name: str, settings: Mapping[str, Any], actor: str | None = None) -> str:
        """Create a token and return its text, which is shown only once."""
        rows = await self._calls.call_once(
            "select treadle.create_token(%b, %b, %b)",
            name,
            RawJson(encode(dict(settings), name="settings")),
            actor,
        )
        return str(rows[0][0])

    async def revoke(self, token: str, actor: str | None = None) -> str:
        """Revoke a token by id or name; return its id."""
        rows = await self._calls.call("select treadle.revoke_token(%b, %b)", token, actor)
        return str(rows[0][0])

    async def find(self, token_id: str) -> Token | None:
        rows = await self._calls.call(
            """
            select name, secret_hash, scopes, queues, agent, project_id, project, status, used
            from treadle.find_token(%b)
            """,
            token_id,
        )
        return Token(*rows[0]) if rows else None

    async def exist(self) -> tuple[bool, bool]:
        """Return whether a token exists that is not revoked, and whether one is valid now."""
        rows = await self._calls.call("select wanted, live from treadle.has_tokens()")
        return rows[0][0], rows[0][1]

    async def note_use(self, token_id: str) -> bool:
        rows = await self._calls.call("select treadle.record_token_use(%b)", token_id)
        return bool(rows[0][0])

    async def list(self, *, revoked: bool = False) -> list[dict[str, Any]]:
        """List the tokens by name; with `revoked` also revoked ones."""
        return await self._calls.rows(
            """
            select * from treadle.token_status
            where status <> 'revoked' or %(revoked)s
            order by name, created_at
            """,
            {"revoked": revoked},
        )
