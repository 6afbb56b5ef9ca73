"""Stored responses to requests with an idempotency key; reached as `db.replies`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.db.calls import Calls, RawJson
from treadle.db.errors import refusal
from treadle.json import encode


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An HTTP response; `replayed` means that it was stored by an earlier request."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an idempotency key: its principal, its route and a hash of its body."""

    key: str
    principal: str
    route: str
    hash: str


class Replies:
    """Read and store responses to requests with an idempotency key."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def begin(self, request: KeyedRequest) -> StoredResponse | None:
        rows = await self._calls.call(
            "select problem, status, headers, body from treadle.begin_reply(%b, %b, %b, %b)",
            request.key,
            request.principal,
            request.route,
            request.hash,
        )
        if not rows:
            return None
        problem, status, headers, body = rows[0]
        if problem is not None:
            raise refusal(problem)
        return StoredResponse(status, body, headers, replayed=True)

    async def keep(self, request: KeyedRequest, reply: StoredResponse) -> None:
        await self._calls.call(
            "select treadle.save_reply(%b, %b, %b, %b, %b::integer, %b, %b)",
            request.key,
            request.principal,
            request.route,
            request.hash,
            reply.status,
            RawJson(encode(dict(reply.headers), name="headers")),
            reply.body,
        )
