"""`/v1/artifacts`: the files of tasks and their contents."""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

import anyio
import structlog
from fastapi import APIRouter, Header
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.api.access import ARTIFACT, Access, requires
from treadle.api.bodies import json_response, json_row
from treadle.api.problems import answers
from treadle.artifacts.store import Store
from treadle.errors import ArtifactNotFound, Conflict, TreadleError, Unavailable
from treadle.fields import Status

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"])
Read = Annotated[Access, requires("read", on=ARTIFACT)]
UNKNOWN_TYPE = "application/octet-stream"
# Each file that is being sent takes the memory of a few of its parts.
MOST_AT_ONCE = 16
# Close the connection of a client that reads nothing for this long.
SEND_S = 20.0
PIECE = 64 * 1024
# A task may set any media type; only these are safe in a header.
_MEDIA_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+(;[ -~]*)?", re.ASCII)
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    },
    304: {"description": "The file still has this ETag."},
}


class Artifact(BaseModel):
    """A file of a task. A `linked` file is stored at `uri`; a `storing` one is not complete."""

    id: UUID
    task_id: UUID
    name: str
    status: str
    media_type: str | None
    bytes: int | None
    sha256: str | None
    uri: str
    attempt: int | None
    agent_id: str | None
    queue: str
    type: str
    title: str | None
    task_status: Status
    created_at: datetime
    stored_at: datetime | None


@router.get(
    "/{artifact_id}",
    response_model=Artifact,
    responses=answers(404),
)
async def show(artifact_id: UUID, access: Read) -> Response:
    """Get a file's metadata.

    The response has its task, size, hash and location.
    """
    found = await access.db.artifacts.get(artifact_id)
    return json_response(json_row({name: found[name] for name in Artifact.model_fields}))


@router.get(
    "/{artifact_id}/content",
    responses={**_CONTENT, **answers(404, 409)},
)
async def content(
    artifact_id: UUID,
    access: Read,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=2000)] = None,
) -> Response:
    """Get the content of a file.

    The server reads it from its store; the `ETag` is its SHA-256. The response is 409 if the file
    is linked or in another store.
    """
    found = await access.db.artifacts.get(artifact_id)
    if found["status"] == "linked":
        raise Conflict(
            f"artifact {found['name']} is stored elsewhere: {found['uri']}",
            hint="It was linked, not stored: read it from its uri.",
            uri=found["uri"],
        )
    if found["status"] != "stored":
        raise ArtifactNotFound(
            f"artifact {artifact_id} is not stored yet", hint="The upload has not finished."
        )
    etag = f'"{found["sha256"]}"'
    if known is not None and etag in (each.strip() for each in known.split(",")):
        return Response(status_code=304, headers={"ETag": etag})
    return _File(access.app.store, found, etag)


class _File(Response):
    """A response that sends a file as it is read; a damaged file is sent incomplete."""

    under_way = 0

    def __init__(self, store: Store, found: dict[str, Any], etag: str) -> None:
        kind = found["media_type"] or ""
        super().__init__(media_type=kind if _MEDIA_TYPE.fullmatch(kind) else UNKNOWN_TYPE)
        self.headers.update(
            {
                "Content-Length": str(found["bytes"]),
                "ETag": etag,
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found['name'], '')}",
                # A task wrote the file: the browser must not treat it as a page of this server.
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "sandbox; default-src 'none'",
            }
        )
        self._store = store
        self._found = found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Errors before the first byte become problem documents; later ones end the connection."""
        if _File.under_way >= MOST_AT_ONCE:
            raise Unavailable("this server is sending the maximum number of files", retry_after_s=1)
        _File.under_way += 1
        begun = False
        try:
            parts = _checked(self._store, self._found)
            first = await anext(parts, b"")
            begun = True
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            await _send(send, first)
            async for part in parts:
                await _send(send, part)
            await send({"type": "http.response.body", "body": b""})
        except (TreadleError, TimeoutError) as error:
            if not begun:
                raise
            # Fewer bytes than Content-Length tell the client that the file is incomplete.
            log.warning("artifact.send_failed", id=str(self._found["id"]), error=str(error))
        finally:
            _File.under_way -= 1


async def _checked(store: Store, found: dict[str, Any]) -> AsyncIterator[bytes]:
    """The parts of a file; the last one only after the whole file matches its hash."""
    held = b""
    try:
        async for part in store.read(found["key"], found["bytes"], found["sha256"]):
            if held:
                yield held
            held = part
    except ArtifactNotFound as error:
        if found["uri"].startswith(f"{store.url}/"):
            raise
        raise Conflict(
            f"artifact {found['name']} is in another store: {found['uri']}",
            hint="Set TREADLE_ARTIFACTS_URL of the server as for the workers.",
            uri=found["uri"],
        ) from error
    if held:
        yield held


async def _send(send: Send, part: bytes) -> None:
    for at in range(0, len(part), PIECE):
        with anyio.fail_after(SEND_S):
            body = part[at : at + PIECE]
            await send({"type": "http.response.body", "body": body, "more_body": True})
