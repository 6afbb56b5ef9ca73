"""Stored answers: what is done once for a key; reached as `db.replies`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.db.calls import Calls, RawJson
from treadle.json import encode


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer over HTTP; `replayed` says that it was stored before."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key: who sent it where, and a hash of what it says."""

    key: str
    principal: str
    route: str
    hash: str


class Replies:
    """Stored answers of requests with an idempotency key."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def begin(self, asked: KeyedRequest) -> StoredResponse | None:
        rows = await self._calls.call(
            "select status, headers, body from treadle.begin_reply(%b, %b, %b, %b)",
            asked.key,
            asked.principal,
            asked.route,
            asked.hash,
        )
        if not rows:
            return None
        status, headers, body = rows[0]
        return StoredResponse(status, body, headers, replayed=True)

    async def keep(self, asked: KeyedRequest, reply: StoredResponse) -> None:
        await self._calls.call(
            "select treadle.keep_reply(%b, %b, %b, %b, %b::integer, %b, %b)",
            asked.key,
            asked.principal,
            asked.route,
            asked.hash,
            reply.status,
            RawJson(encode(dict(reply.headers), name="headers")),
            reply.body,
        )
