"""One POST to an endpoint: signed, to a judged address, without redirects, with little read."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import anyio

from treadle.db.webhooks import WebhookTarget
from treadle.services.notifier_addresses import AddressRefused, Rules
from treadle.services.notifier_formats import body_of, signatures
from treadle.services.outbound import beginning, request, transport

if TYPE_CHECKING:
    import httpx2

READ_S = 2.0


@dataclass(frozen=True)
class Answer:
    """What came of a try; without an error it arrived."""

    status: int | None
    error: str | None
    ms: int
    after_s: float | None = None
    body: bytes = b""


class HttpSender:
    """Sends to one endpoint; connections are not shared with others."""

    def __init__(self, target: WebhookTarget, rules: Rules, transport: Any) -> None:
        self._target = target
        self._rules = rules
        self._transport = transport

    async def send(self, message_id: str, kind: str, document: str) -> Answer:
        """Post one message; whatever the other side does, this ends in time with an answer."""
        import httpx2

        began = time.monotonic()
        timeout_s = self._rules.timeout_s
        status: int | None = None
        after_s: float | None = None
        body = b""
        try:
            with anyio.fail_after(timeout_s):
                response = await self._post(message_id, body_of(self._target.format, document))
            status, after_s = response.status_code, _after_s(response.headers.get("retry-after"))
            try:
                with anyio.move_on_after(min(READ_S, timeout_s)):
                    body = await beginning(response)
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
            # What was answered counts, even when the rest of the answer is broken.
            error = _said(problem, timeout_s) if status is None else _problem(status)
        ms = int((time.monotonic() - began) * 1000)
        return Answer(status, error, ms, after_s, body)

    async def _post(self, message_id: str, body: bytes) -> "httpx2.Response":
        import httpx2

        now = int(time.time())
        return await request(
            self._transport,
            "POST",
            httpx2.URL(self._target.url),
            rules=self._rules,
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
async def http_sender(target: WebhookTarget, rules: Rules) -> AsyncIterator[HttpSender]:
    """A sender for one endpoint, with at most one open connection."""
    async with transport() as made:
        yield HttpSender(target, rules, made)


def _problem(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"answered {status}: redirects are not followed"
    return f"answered {status}"


def _said(problem: Exception, timeout_s: float) -> str:
    if isinstance(problem, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    text = str(problem).strip() or type(problem).__name__
    return f"{type(problem).__name__}: {text}" if not isinstance(problem, AddressRefused) else text


def _after_s(text: str | None) -> float | None:
    """Retry-After: seconds or a date."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return min(float(text), 86_400.0)
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment - datetime.now(tz=UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
