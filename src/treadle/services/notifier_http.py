"""One POST to an endpoint: signed, to a judged address, without redirects, with little read."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio

from treadle.db.webhooks import WebhookTarget
from treadle.errors import extra
from treadle.services.notifier_addresses import AddressRefused, Rules, checked_addresses
from treadle.services.notifier_formats import body_of, signatures

if TYPE_CHECKING:
    import ssl

    import httpx2

MOST_READ = 64 * 1024
READ_S = 2.0
MOST_ADDRESSES = 4


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
                    body = await _beginning(response)
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

        url = httpx2.URL(self._target.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        host = url.raw_host.decode("ascii")
        addresses = await checked_addresses(
            url.scheme, host, port, rules=self._rules, allowed=self._target.allow_private
        )
        now = int(time.time())
        headers = {
            "host": url.netloc.decode("ascii"),
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": "treadle",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
            "webhook-signature": signatures(self._target.secrets, message_id, now, body),
        }
        seconds = self._rules.timeout_s
        last: Exception = AddressRefused("the name has no address")
        for address in addresses[:MOST_ADDRESSES]:
            request = httpx2.Request(
                "POST",
                url.copy_with(host=address),
                headers=headers,
                content=body,
                extensions={
                    "sni_hostname": host,
                    "timeout": {
                        "connect": seconds / 2,
                        "read": seconds,
                        "write": seconds,
                        "pool": seconds,
                    },
                },
            )
            try:
                response: httpx2.Response = await self._transport.handle_async_request(request)
                return response
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                last = error  # nothing was sent: the next address may be reachable
        raise last


@asynccontextmanager
async def http_sender(target: WebhookTarget, rules: Rules) -> AsyncIterator[HttpSender]:
    """A sender for one endpoint, with at most one open connection."""
    with extra("webhooks", "webhooks need httpx2"):
        import httpx2
    # Its messages would show paths, and paths can be secrets.
    logging.getLogger("httpcore2").setLevel(logging.WARNING)
    limits = httpx2.Limits(max_connections=2, max_keepalive_connections=1, keepalive_expiry=20)
    # The bare transport: no proxies, no cookies, no redirects, no decompression.
    transport = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
    try:
        yield HttpSender(target, rules, transport)
    finally:
        with anyio.move_on_after(2, shield=True):
            await transport.aclose()


@cache
def _tls() -> "ssl.SSLContext":
    """One for all: reading the certificates takes time and memory."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def _beginning(response: "httpx2.Response") -> bytes:
    """The first bytes of an answer, not decompressed; the rest is never read."""
    kept = b""
    async for chunk in response.stream:  # type: ignore[union-attr]
        kept += chunk[: MOST_READ - len(kept)]
        if len(kept) >= MOST_READ:
            break
    return kept


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
