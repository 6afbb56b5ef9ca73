"""Idempotency-Key: a POST that is sent twice does its work once.

The answer is stored in the transaction of what was done, for 24 hours. The same request again gets
it with `Idempotent-Replayed: true`; another request with the key gets 422, one that comes while the
first is under way 409. An error is not stored: the key is free again. A route:

    async def make(thing: NewThing, once: Once) -> Response:
        async def effect(db: Database) -> Response:
            return json_response(await db.things.create(thing.name), 201)

        return await once(effect)
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Request
from starlette.responses import Response

from treadle.api.access import Principal, database, principal
from treadle.api.responses import MEDIA_TYPE
from treadle.db.database import Database
from treadle.db.replies import KeyedRequest, StoredResponse
from treadle.errors import InvalidArgument

Effect = Callable[[Database], Awaitable[Response]]
_KEPT = ("location", "link")
LONGEST = 200


class Idempotency:
    """Does what a request asks for, once for its key; without a key, just does it."""

    def __init__(self, request: Request, who: Principal, db: Database, key: str | None) -> None:
        self._request = request
        self.who = who
        self._db = db
        self._key = key

    @property
    def keyed(self) -> bool:
        """Whether the answer is stored, with what is done, in a transaction of its own."""
        return self._key is not None

    async def __call__(self, effect: Effect) -> Response:
        """The answer of `effect`, which makes all its changes through the database that it gets."""
        if self._key is None:
            return await effect(self._db)

        async def answered(db: Database) -> StoredResponse:
            given = await effect(db)
            kept = {name: given.headers[name] for name in _KEPT if name in given.headers}
            return StoredResponse(given.status_code, bytes(given.body), kept)

        reply = await self._db.run_once(await self._asked(self._key), answered)
        headers = dict(reply.headers)
        if reply.replayed:
            headers["Idempotent-Replayed"] = "true"
        return Response(reply.body, reply.status, headers, MEDIA_TYPE if reply.body else None)

    async def _asked(self, key: str) -> KeyedRequest:
        request = self._request
        route = f"{request.method} {request.url.path}"
        said = hashlib.sha256(request.url.query.encode() + b"\n" + await request.body())
        return KeyedRequest(key, self.who.name, route, said.hexdigest())


# A coroutine: FastAPI would take a plain class to another thread.
async def _once(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=LONGEST,
            description="A repeat with the same key and body gets the first answer again.",
        ),
    ] = None,
) -> Idempotency:
    # Not by Caller and Db: each dependency of a dependency costs as much again.
    return Idempotency(request, await principal(request), await database(request), key)


async def _quickly(request: Request) -> Idempotency:
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= LONGEST:
        raise InvalidArgument(f"Idempotency-Key has 1 to {LONGEST} characters", argument="key")
    return Idempotency(request, await principal(request), await database(request), key)


# How a quick route gets it.
_once.quick = _quickly  # type: ignore[attr-defined]
Once = Annotated[Idempotency, Depends(_once)]
