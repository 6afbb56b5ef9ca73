"""Deliver events by HTTP: a signed POST to a checked address, without redirects.

The body is the JSON document of the event, or a sentence for Slack.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import anyio

from treadle.db.webhooks import WebhookTarget
from treadle.services.outbound import (
    AddressRefused,
    OutboundPolicy,
    read_prefix,
    request,
    transport,
)

if TYPE_CHECKING:
    import httpx2

READ_S = 2.0
MAX_TEXT = 3000
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"})
_SENTENCES = {
    "task.dead_lettered": "{task} was dead-lettered",
    "task.completed": "{task} is completed",
    "task.cancelled": "{task} was cancelled",
    "dag.completed": "{dag} is completed",
    "dag.failed": "{dag} failed",
    "dag.cancelled": "{dag} was cancelled",
    "queue.paused": "Queue {queue} is paused",
    "queue.removed": "Queue {queue} is removed",
    "queue.resumed": "Queue {queue} is resumed",
    "agent.timed_out": "An agent has stopped sending heartbeats",
    "budget.exhausted": "A budget is exhausted",
    "breaker.opened": "A circuit breaker is open: tasks of this type fail",
    "breaker.closed": "A circuit breaker is closed again",
    "gate.closed": "A gate is closed",
    "gate.opened": "A gate is open again",
    "wait.opened": "{task} is waiting for an answer",
    "webhook.failed": "A webhook keeps failing",
    "webhook.recovered": "A webhook works again",
    "webhook.test": "This is a test",
}


@dataclass(frozen=True)
class Answer:
    """The result of a delivery; without an error it succeeded."""

    status: int | None
    error: str | None
    ms: int
    after_s: float | None = None
    body: bytes = b""


class HttpSender:
    """Sends to one endpoint over its own connections."""

    def __init__(self, target: WebhookTarget, policy: OutboundPolicy, transport: Any) -> None:
        self._target = target
        self._policy = policy
        self._transport = transport

    async def send(self, message_id: str, kind: str, document: str) -> Answer:
        """Send one message and return within the timeout, whatever the endpoint does."""
        import httpx2

        began = time.monotonic()
        timeout_s = self._policy.timeout_s
        status: int | None = None
        after_s: float | None = None
        body = b""
        try:
            with anyio.fail_after(timeout_s):
                response = await self._post(message_id, body_of(self._target.format, document))
            status, after_s = response.status_code, _after_s(response.headers.get("retry-after"))
            try:
                with anyio.move_on_after(min(READ_S, timeout_s)):
                    body = await read_prefix(response)
            finally:
                with anyio.move_on_after(1, shield=True):
                    await response.aclose()
            error = _problem(status)
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            AddressRefused,
            OSError,
            ValueError,
        ) as problem:
            # Once there is a status it counts, even if reading the body fails.
            error = _describe(problem, timeout_s) if status is None else _problem(status)
        ms = int((time.monotonic() - began) * 1000)
        return Answer(status, error, ms, after_s, body)

    async def _post(self, message_id: str, body: bytes) -> "httpx2.Response":
        import httpx2

        now = int(time.time())
        return await request(
            self._transport,
            "POST",
            httpx2.URL(self._target.url),
            policy=self._policy,
            allowed=self._target.allow_private,
            headers={
                "content-type": "application/json",
                "webhook-id": message_id,
                "webhook-timestamp": str(now),
                "webhook-signature": signatures(self._target.secrets, message_id, now, body),
            },
            body=body,
        )


@asynccontextmanager
async def http_sender(target: WebhookTarget, policy: OutboundPolicy) -> AsyncIterator[HttpSender]:
    """Open a sender for one endpoint, which keeps at most one idle connection."""
    async with transport() as connections:
        yield HttpSender(target, policy, connections)


def _problem(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"answered {status}: redirects are not followed"
    return f"answered {status}"


def _describe(problem: Exception, timeout_s: float) -> str:
    if isinstance(problem, TimeoutError):
        return f"no response within {timeout_s:g} s"
    text = str(problem).strip() or type(problem).__name__
    return f"{type(problem).__name__}: {text}" if not isinstance(problem, AddressRefused) else text


def _after_s(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return min(float(text), 86_400.0)
        retry_at = parsedate_to_datetime(text)
        return max(0.0, (retry_at - datetime.now(tz=UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def signatures(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature header of Standard Webhooks: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def body_of(form: str, document: str) -> bytes:
    """Return the body of a message in the format of an endpoint."""
    if form != "slack":
        return document.encode()
    text = sentence(json.loads(document))
    return json.dumps({"text": text, "unfurl_links": False, "unfurl_media": False}).encode()


def sentence(event: Mapping[str, Any]) -> str:
    """Describe an event as text without links, mentions or markup."""
    kind = str(event["type"])
    task, dag, queue = event.get("task_id"), event.get("dag_id"), event.get("queue")
    type_ = event.get("task_type")
    begin = _SENTENCES.get(kind, "{kind}").format(
        kind=kind,
        task=(f"Task {task}" if task else "A task") + (f" ({type_})" if type_ else ""),
        dag=f"DAG {dag}" if dag else "A DAG",
        queue=queue or "?",
    )
    where = [
        f"{word} {value}"
        for word, value in (
            ("queue", queue),
            ("task", task),
            ("DAG", dag),
            ("key", event.get("key")),
        )
        if value and str(value) not in begin
    ]
    facts = [f"{name}: {_short(value)}" for name, value in _facts(event.get("data"))]
    text = ", ".join([begin, *where]) + (f" ({'; '.join(facts)})" if facts else "")
    if kind in _SENTENCES:
        text += f" [{kind}]"
    # A zero-width space keeps Slack from turning URLs into links.
    safe = text.translate(_ESCAPES).replace("://", ":\u200b//")
    return safe[:MAX_TEXT]


def _facts(data: object) -> list[tuple[str, Any]]:
    if not isinstance(data, Mapping):
        return [] if data is None else [("data", data)]
    return [(str(name), value) for name, value in list(data.items())[:10] if value is not None]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"
