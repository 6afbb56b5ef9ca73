"""`/v1/webhooks`: where events are sent, and how it goes; and calls that come in from outside."""

from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Body, Path, Request
from starlette.responses import Response

from treadle.api.access import Who, need
from treadle.api.deps import Calls, Config, Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_webhooks as models
from treadle.api.v1.fields import Reason
from treadle.api.v1.reach import check_everywhere
from treadle.api.wire import answer, record
from treadle.db.gateway import Gateway
from treadle.errors import InvalidArgument, MissingExtra
from treadle.json import encode
from treadle.services.notifier import message_id, sender_for
from treadle.services.outbound import Rules

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
Name = Annotated[str, Path(min_length=1, max_length=100)]
# What stands there in the path of `receive`.
TAKEN = "in"
Source = Annotated[str, Path(min_length=1, max_length=200)]
# What of a call is kept besides its body: nothing that lets somebody in.
_KEPT = ("content-type", "user-agent", "webhook-id", "webhook-timestamp")
_IDS = ("webhook-id", "idempotency-key", "x-github-delivery")


@router.post(
    "/in/{name}",
    status_code=202,
    response_model=models.Received,
    dependencies=[need("enqueue")],
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
    name: Source, request: Request, calls: Calls, who: Who, payload: Annotated[Any, Body()]
) -> Response:
    """Somebody outside has called: the event webhook.received, with the name as its key.

    Tasks and triggers that wait for it go on. A repeat with the same webhook-id (or
    Idempotency-Key, X-GitHub-Delivery) is the same event.
    """
    check_everywhere(who)
    headers = {key: request.headers[key] for key in request.headers if _is_kept(key)}
    dedup = next((request.headers[key] for key in _IDS if request.headers.get(key)), None)
    event_id = await calls.receive_webhook(
        name, encode(payload, name="payload"), headers=headers, dedup_key=dedup, actor=who.name
    )
    return answer({"event_id": event_id}, 202)


@router.get("", response_model=Listed[models.Webhook], dependencies=[need("read")])
async def list_webhooks(views: Views, page: Page, who: Who) -> Response:
    """Webhooks by name: what was delivered, what waits, what went wrong."""
    check_everywhere(who)
    rows = await views.page("webhook_status", key="name", after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get(
    "/{name}", response_model=models.Webhook, responses=answers(404), dependencies=[need("read")]
)
async def show(name: Name, views: Views, who: Who) -> Response:
    """One webhook."""
    check_everywhere(who)
    return answer(record(await views.webhook(name)))


@router.put("/{name}", response_model=models.DefinedWebhook, dependencies=[need("admin")])
async def define(
    name: Name, settings: models.WebhookSettings, calls: Calls, views: Views, who: Who
) -> Response:
    """Add a webhook, or change one; its secret is in the answer once, when it is made."""
    check_everywhere(who)
    if name == TAKEN:
        raise InvalidArgument(
            f"a webhook cannot be called {TAKEN}: /v1/webhooks/{TAKEN}/… is for calls from outside",
            hint="Give it another name.",
            argument="name",
        )
    given = settings.model_dump(exclude_none=True)
    secret = await calls.define_webhook(name, given, who.name)
    shown = None if settings.secret is not None else secret
    return answer({**record(await views.webhook(name)), "secret": shown})


@router.delete("/{name}", status_code=204, responses=answers(404), dependencies=[need("admin")])
async def remove(name: Name, calls: Calls, who: Who) -> Response:
    """Forget a webhook; what it has not got is not sent to it any more."""
    check_everywhere(who)
    await calls.remove_webhook(name, who.name)
    return Response(status_code=204)


@router.post(
    "/{name}/pause",
    response_model=models.Webhook,
    responses=answers(404),
    dependencies=[need("admin")],
)
async def pause(
    name: Name, calls: Calls, views: Views, who: Who, why: Reason | None = None
) -> Response:
    """Send nothing to a webhook for now; its events wait."""
    check_everywhere(who)
    await calls.pause_webhook(name, why.reason if why else None, who.name)
    return answer(record(await views.webhook(name)))


@router.post(
    "/{name}/resume",
    response_model=models.Webhook,
    responses=answers(404),
    dependencies=[need("admin")],
)
async def resume(name: Name, calls: Calls, views: Views, who: Who) -> Response:
    """Send to a webhook again, at once and from where it stopped."""
    check_everywhere(who)
    await calls.resume_webhook(name, who.name)
    return answer(record(await views.webhook(name)))


@router.post(
    "/{name}/rotate",
    response_model=models.Secret,
    responses=answers(404),
    dependencies=[need("admin")],
)
async def rotate(name: Name, who: Who, once: Once, asked: models.Rotate | None = None) -> Response:
    """Give a webhook a new secret, shown once; for a while both sign."""
    check_everywhere(who)
    given = asked or models.Rotate.model_validate({})

    async def effect(calls: Gateway) -> Response:
        secret = await calls.rotate_webhook(name, given.keep_s, who.name)
        return answer({"name": name, "secret": secret})

    return await once(effect)


@router.post(
    "/{name}/test",
    response_model=models.Tested,
    responses=answers(404),
    dependencies=[need("admin")],
)
async def test(name: Name, calls: Calls, config: Config, who: Who) -> Response:
    """Send a webhook.test message from this server, now, and say what came of it."""
    check_everywhere(who)
    target, document = await calls.test_webhook(name)
    try:
        async with sender_for(target, Rules.of(config)) as sender:
            said = await sender.send(
                message_id(target, f"test_{uuid4().hex}"), "webhook.test", document
            )
    except MissingExtra as error:
        return answer({"status": None, "error": str(error), "ms": 0})
    return answer({"status": said.status, "error": said.error, "ms": said.ms})


@router.get(
    "/{name}/deliveries",
    response_model=Listed[models.Delivery],
    responses=answers(404),
    dependencies=[need("read")],
)
async def deliveries(name: Name, views: Views, page: Page, who: Who) -> Response:
    """The last tries, the newest first; a hundred are kept of each webhook."""
    check_everywhere(who)
    await views.webhook(name)
    rows = await views.page(
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
