"""`/v1/webhooks`: where events are sent, and how it goes; and calls that come in from outside."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

import fastapi
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Config, Db, check_everywhere, requires
from treadle.api.bodies import Body, Name, Object, Reason, Text
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.errors import InvalidArgument, MissingExtra
from treadle.json import encode
from treadle.services.notifier import message_id, sender_for
from treadle.services.outbound import OutboundPolicy

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
WebhookName = Annotated[str, Path(min_length=1, max_length=100)]
# What stands there in the path of `receive`.
TAKEN = "in"
Source = Annotated[str, Path(min_length=1, max_length=200)]
# What of a call is kept besides its body: nothing that lets somebody in.
_KEPT = ("content-type", "user-agent", "webhook-id", "webhook-timestamp")
_IDS = ("webhook-id", "idempotency-key", "x-github-delivery")


class WebhookSettings(Body):
    """Where events are sent, and which; what is not named stays as it is."""

    url: Text | None = Field(None, min_length=1, max_length=2000)
    format: Literal["standard", "slack", "redis"] | None = None
    kinds: list[Name] | None = Field(
        None, min_length=1, max_length=100, description="With * for any ending; else all."
    )
    filter: Object | None = Field(None, description="What an event must contain, as it is sent.")
    stream: Text | None = Field(None, min_length=1, max_length=500)
    max_length: int | None = Field(None, ge=1, le=100_000_000)
    allow_private: bool | None = None
    secret: Text | None = Field(None, min_length=38, max_length=94)
    from_start: bool | None = Field(None, description="Begin with the oldest event kept.")


class Rotate(Body):
    """For how long the former secret signs too."""

    keep_s: float = Field(86_400, ge=0, le=31_536_000)


class Webhook(BaseModel):
    """A webhook with everything but its secrets and the path of its address."""

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
    """A webhook; its secret where it is new, this once."""

    secret: str | None


class Secret(BaseModel):
    """A new secret, shown this once."""

    name: str
    secret: str


class Delivery(BaseModel):
    """A try to deliver an event."""

    id: int
    webhook: str
    at: datetime
    event_id: int
    kind: str | None
    status: int | None
    error: str | None
    ms: int


class Tested(BaseModel):
    """What the other side said to a test message; without an error it arrived."""

    status: int | None
    error: str | None
    ms: int


class Received(BaseModel):
    """The event that a call from outside became."""

    event_id: int


@router.post(
    "/in/{name}",
    status_code=202,
    response_model=Received,
    dependencies=[requires("enqueue")],
    openapi_extra={
        "parameters": [
            {
                "name": "webhook-id",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "maxLength": 200},
                "description": "A second call with it is the same event.",
            }
        ]
    },
)
async def receive(
    name: Source,
    request: Request,
    db: Db,
    who: Caller,
    payload: Annotated[Any, fastapi.Body()],
) -> Response:
    """Somebody outside has called: the event webhook.received, with the name as its key.

    Tasks and triggers that wait for it go on. A repeat with the same webhook-id (or
    Idempotency-Key, X-GitHub-Delivery) is the same event.
    """
    check_everywhere(who)
    headers = {key: request.headers[key] for key in request.headers if _is_kept(key)}
    dedup = next((request.headers[key] for key in _IDS if request.headers.get(key)), None)
    event_id = await db.events.receive_webhook(
        name, encode(payload, name="payload"), headers=headers, dedup_key=dedup, actor=who.name
    )
    return json_response({"event_id": event_id}, 202)


@router.get("", response_model=Listed[Webhook], dependencies=[requires("read")])
async def list_webhooks(db: Db, page: Page, who: Caller) -> Response:
    """Webhooks by name: what was delivered, what waits, what went wrong."""
    check_everywhere(who)
    rows = await db.calls.page("webhook_status", key="name", after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get(
    "/{name}", response_model=Webhook, responses=answers(404), dependencies=[requires("read")]
)
async def show(name: WebhookName, db: Db, who: Caller) -> Response:
    """One webhook."""
    check_everywhere(who)
    return json_response(json_row(await db.webhooks.get(name)))


@router.put("/{name}", response_model=DefinedWebhook, dependencies=[requires("admin")])
async def define(name: WebhookName, settings: WebhookSettings, db: Db, who: Caller) -> Response:
    """Add a webhook, or change one; its secret is in the answer once, when it is made."""
    check_everywhere(who)
    if name == TAKEN:
        raise InvalidArgument(
            f"a webhook cannot be called {TAKEN}: /v1/webhooks/{TAKEN}/… is for calls from outside",
            hint="Give it another name.",
            argument="name",
        )
    given = settings.model_dump(exclude_none=True)
    secret = await db.webhooks.define(name, given, who.name)
    shown = None if settings.secret is not None else secret
    return json_response({**json_row(await db.webhooks.get(name)), "secret": shown})


@router.delete("/{name}", status_code=204, responses=answers(404), dependencies=[requires("admin")])
async def remove(name: WebhookName, db: Db, who: Caller) -> Response:
    """Forget a webhook; what it has not got is not sent to it any more."""
    check_everywhere(who)
    await db.webhooks.remove(name, who.name)
    return Response(status_code=204)


@router.post(
    "/{name}/pause",
    response_model=Webhook,
    responses=answers(404),
    dependencies=[requires("admin")],
)
async def pause(name: WebhookName, db: Db, who: Caller, why: Reason | None = None) -> Response:
    """Send nothing to a webhook for now; its events wait."""
    check_everywhere(who)
    await db.webhooks.pause(name, why.reason if why else None, who.name)
    return json_response(json_row(await db.webhooks.get(name)))


@router.post(
    "/{name}/resume",
    response_model=Webhook,
    responses=answers(404),
    dependencies=[requires("admin")],
)
async def resume(name: WebhookName, db: Db, who: Caller) -> Response:
    """Send to a webhook again, at once and from where it stopped."""
    check_everywhere(who)
    await db.webhooks.resume(name, who.name)
    return json_response(json_row(await db.webhooks.get(name)))


@router.post(
    "/{name}/rotate",
    response_model=Secret,
    responses=answers(404),
    dependencies=[requires("admin")],
)
async def rotate(
    name: WebhookName, who: Caller, once: Once, asked: Rotate | None = None
) -> Response:
    """Give a webhook a new secret, shown once; for a while both sign."""
    check_everywhere(who)
    given = asked or Rotate.model_validate({})

    async def effect(db: Database) -> Response:
        secret = await db.webhooks.rotate(name, given.keep_s, who.name)
        return json_response({"name": name, "secret": secret})

    return await once(effect)


@router.post(
    "/{name}/test",
    response_model=Tested,
    responses=answers(404),
    dependencies=[requires("admin")],
)
async def test(name: WebhookName, db: Db, config: Config, who: Caller) -> Response:
    """Send a webhook.test message from this server, now, and say what came of it."""
    check_everywhere(who)
    target, document = await db.webhooks.test(name)
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
    dependencies=[requires("read")],
)
async def deliveries(name: WebhookName, db: Db, page: Page, who: Caller) -> Response:
    """The last tries, the newest first; a hundred are kept of each webhook."""
    check_everywhere(who)
    await db.webhooks.get(name)
    rows = await db.calls.page(
        "delivery_log",
        key="id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={"webhook = {}": name},
    )
    return page.answer(rows, "id")


def _is_kept(header: str) -> bool:
    return header in _KEPT or header.startswith("x-github-")
