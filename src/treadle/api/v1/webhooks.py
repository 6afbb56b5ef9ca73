"""`/v1/webhooks`: outgoing webhooks with their deliveries, and incoming calls."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

import fastapi
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, Access, Config, requires
from treadle.api.bodies import Body, Name, Object, Reason, Text, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.errors import InvalidArgument, MissingExtra
from treadle.json import encode
from treadle.services.notifier import message_id, sender_for
from treadle.services.outbound import OutboundPolicy

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
Receive = Annotated[Access, requires("enqueue", on=SHARED)]
Read = Annotated[Access, requires("read", on=SHARED)]
Admin = Annotated[Access, requires("admin", on=SHARED)]
WebhookName = Annotated[str, Path(min_length=1, max_length=100)]
# The name that is reserved for the path of `receive`.
TAKEN = "in"
Source = Annotated[str, Path(min_length=1, max_length=200)]
# Headers that are stored with the body: none of them is a credential.
_KEPT = ("content-type", "user-agent", "webhook-id", "webhook-timestamp")
_IDS = ("webhook-id", "idempotency-key", "x-github-delivery")


class WebhookSettings(Body):
    """Settings of a webhook; absent fields keep their values."""

    url: Text | None = Field(None, min_length=1, max_length=2000)
    format: Literal["standard", "slack", "redis"] | None = None
    kinds: list[Name] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="A * at the end matches any ending; all kinds if absent.",
    )
    filter: Object | None = Field(None, description="What an event must contain.")
    stream: Text | None = Field(None, min_length=1, max_length=500)
    max_length: int | None = Field(None, ge=1, le=100_000_000)
    allow_private: bool | None = None
    secret: Text | None = Field(None, min_length=38, max_length=94)
    from_start: bool | None = Field(None, description="Start with the oldest stored event.")


class Rotate(Body):
    """How long the old secret stays valid, in seconds."""

    keep_s: float = Field(86_400, ge=0, le=31_536_000)


class Webhook(BaseModel):
    """A webhook without its secrets and the path of its URL."""

    name: str
    format: str
    address: str
    stream: str | None
    kinds: list[str]
    filter: dict[str, Any]
    allow_private: bool
    status: str
    reason: str | None
    failures: int
    failed_since_at: datetime | None
    next_try_at: datetime | None
    last_status: int | None
    last_error: str | None
    last_try_at: datetime | None
    delivered: int
    delivered_at: datetime | None
    unread: int
    delivering: bool | None
    rotated_until: datetime | None
    created_at: datetime
    created_by: str


class DefinedWebhook(Webhook):
    """A webhook; `secret` is shown once, when it is generated."""

    secret: str | None


class Secret(BaseModel):
    """A new secret, shown once."""

    name: str
    secret: str


class Delivery(BaseModel):
    """An attempt to deliver an event."""

    id: int
    webhook: str
    at: datetime
    event_id: int
    kind: str | None
    status: int | None
    error: str | None
    ms: int


class Tested(BaseModel):
    """The response to a test message; without an error it was delivered."""

    status: int | None
    error: str | None
    ms: int


class Received(BaseModel):
    """The event of an incoming call."""

    event_id: int


@router.post(
    "/in/{name}",
    status_code=202,
    response_model=Received,
    openapi_extra={
        "parameters": [
            {
                "name": "webhook-id",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "maxLength": 200},
                "description": "Reusing it returns the existing event.",
            }
        ]
    },
)
async def receive(
    name: Source, request: Request, access: Receive, payload: Annotated[Any, fastapi.Body()]
) -> Response:
    """Receive a webhook from outside.

    The call becomes the event `webhook.received` with the name as its key, which resumes tasks and
    fires triggers. A repeat with the same `webhook-id` (or `Idempotency-Key`, `X-GitHub-Delivery`)
    returns the same event.
    """
    headers = {key: request.headers[key] for key in request.headers if _is_kept(key)}
    dedup = next((request.headers[key] for key in _IDS if request.headers.get(key)), None)
    event_id = await access.db.events.receive_webhook(
        name,
        encode(payload, name="payload"),
        headers=headers,
        dedup_key=dedup,
        actor=access.caller.name,
    )
    return json_response({"event_id": event_id}, 202)


@router.get("", response_model=Listed[Webhook])
async def list_webhooks(access: Read, page: Page) -> Response:
    """List webhooks.

    They are sorted by name and have their deliveries and errors, but not their secrets, and not the
    path of the address.
    """
    rows = await access.db.webhooks.page(after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get("/{name}", response_model=Webhook, responses=answers(404))
async def show(name: WebhookName, access: Read) -> Response:
    """Get a webhook.

    The response has neither its secret nor the path of its address.
    """
    return json_response(json_row(await access.db.webhooks.get(name)))


@router.put("/{name}", response_model=DefinedWebhook)
async def define(name: WebhookName, settings: WebhookSettings, access: Admin) -> Response:
    """Create or change a webhook.

    Fields that the body leaves out keep their values. Only this response contains a new secret. The
    name `in` is reserved.
    """
    if name == TAKEN:
        raise InvalidArgument(
            f"a webhook cannot be called {TAKEN}: /v1/webhooks/{TAKEN}/… is for incoming calls",
            hint="Give it another name.",
            argument="name",
        )
    given = settings.model_dump(exclude_none=True)
    secret, _ = await access.db.webhooks.define(name, given, access.caller.name)
    shown = None if settings.secret is not None else secret
    return json_response({**json_row(await access.db.webhooks.get(name)), "secret": shown})


@router.delete("/{name}", status_code=204, responses=answers(404))
async def remove(name: WebhookName, access: Admin) -> Response:
    """Remove a webhook.

    Its undelivered events are discarded.
    """
    await access.db.webhooks.remove(name, access.caller.name)
    return Response(status_code=204)


@router.post(
    "/{name}/pause",
    response_model=Webhook,
    responses=answers(404),
)
async def pause(name: WebhookName, access: Admin, why: Reason | None = None) -> Response:
    """Pause a webhook.

    Its events wait.
    """
    await access.db.webhooks.pause(name, why.reason if why else None, access.caller.name)
    return json_response(json_row(await access.db.webhooks.get(name)))


@router.post(
    "/{name}/resume",
    response_model=Webhook,
    responses=answers(404),
)
async def resume(name: WebhookName, access: Admin) -> Response:
    """Resume a webhook.

    It continues where it stopped.
    """
    await access.db.webhooks.resume(name, access.caller.name)
    return json_response(json_row(await access.db.webhooks.get(name)))


@router.post(
    "/{name}/rotate",
    response_model=Secret,
    responses=answers(404),
)
async def rotate(
    name: WebhookName, access: Admin, once: Once, asked: Rotate | None = None
) -> Response:
    """Generate a new secret for a webhook.

    Only this response contains it. The old one also signs for `keep_s`.
    """
    given = asked or Rotate.model_validate({})

    async def effect(db: Database) -> Response:
        secret = await db.webhooks.rotate(name, given.keep_s, access.caller.name)
        return json_response({"name": name, "secret": secret})

    return await once(effect)


@router.post(
    "/{name}/test",
    response_model=Tested,
    responses=answers(404),
)
async def test(name: WebhookName, access: Admin, config: Config) -> Response:
    """Send a test message to a webhook.

    This server sends `webhook.test`, with the rules of its settings, and returns the response.
    """
    target, document = await access.db.webhooks.test(name)
    try:
        async with sender_for(target, OutboundPolicy.for_webhooks(config)) as sender:
            said = await sender.send(
                message_id(target, f"test_{uuid4().hex}"), "webhook.test", document
            )
    except MissingExtra as error:
        return json_response({"status": None, "error": str(error), "ms": 0})
    return json_response({"status": said.status, "error": said.error, "ms": said.ms})


@router.get(
    "/{name}/deliveries",
    response_model=Listed[Delivery],
    responses=answers(404),
)
async def deliveries(name: WebhookName, access: Read, page: Page) -> Response:
    """List the deliveries of a webhook.

    The newest come first; a hundred are kept for each webhook.
    """
    await access.db.webhooks.get(name)
    rows = await access.db.webhooks.delivery_page(name, after=page.after(int), limit=page.more)
    return page.answer(rows, "id")


def _is_kept(header: str) -> bool:
    return header in _KEPT or header.startswith("x-github-")
