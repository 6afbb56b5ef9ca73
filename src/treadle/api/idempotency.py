"""Idempotency-Key: a POST that is sent twice takes effect once.

The response is stored for 24 hours, in the transaction of the change. A repeat of the request gets
it with `Idempotent-Replayed: true`; another request with the same key gets 422, and one that comes
while the first is in progress gets 409. Errors are not stored: the key can be used again. A route:

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

from treadle.api.access import access_of
from treadle.api.bodies import MEDIA_TYPE
from treadle.db.database import Database
from treadle.db.replies import KeyedRequest, StoredResponse
from treadle.errors import InvalidArgument

Effect = Callable[[Database], Awaitable[Response]]
_KEPT = ("location", "link")
LONGEST = 200


class Idempotency:
    """Runs the effect of a request once for its key; without a key, just runs it."""

    def __init__(self, request: Request, key: str | None) -> None:
        self._request = request
        self._key = key

    @property
    def keyed(self) -> bool:
        """Whether the request has a key, so that its response is stored with the change."""
        return self._key is not None

    async def __call__(self, effect: Effect) -> Response:
        """Return the response of `effect`, which makes all changes through the database it gets.

        A restricted token's row is checked again in the transaction of the changes.
        """
        access = access_of(self._request)
        if self._key is None and not access.is_rechecked:
            return await effect(access.db)

        async def checked(db: Database) -> Response:
            await access.recheck(db)
            return await effect(db)

        if self._key is None:
            return await access.db.repeat(checked)

        async def respond(db: Database) -> StoredResponse:
            response = await checked(db)
            kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
            return StoredResponse(response.status_code, bytes(response.body), kept)

        keyed = await self._keyed_request(self._key, access.caller.name)
        reply = await access.db.run_once(keyed, respond)
        headers = dict(reply.headers)
        if reply.replayed:
            headers["Idempotent-Replayed"] = "true"
        return Response(reply.body, reply.status, headers, MEDIA_TYPE if reply.body else None)

    async def _keyed_request(self, key: str, caller: str) -> KeyedRequest:
        request = self._request
        route = f"{request.method} {request.url.path}"
        digest = hashlib.sha256(request.url.query.encode() + b"\n" + await request.body())
        return KeyedRequest(key, caller, route, digest.hexdigest())


DESCRIPTION = "A repeat with the same key and body gets the first response again."
# What the OpenAPI document says of a route that calls `read_key`.
KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST},
    "description": DESCRIPTION,
}


# A coroutine, because FastAPI calls plain functions in another thread.
async def _once(
    request: Request,
    key: Annotated[
        str | None,
        Header(alias="Idempotency-Key", min_length=1, max_length=LONGEST, description=DESCRIPTION),
    ] = None,
) -> Idempotency:
    return Idempotency(request, key)


def read_key(request: Request) -> Idempotency:
    """The same as `Once`, for a `DirectRoute`."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= LONGEST:
        raise InvalidArgument(
            f"Idempotency-Key must have 1 to {LONGEST} characters", argument="key"
        )
    return Idempotency(request, key)


Once = Annotated[Idempotency, Depends(_once)]
