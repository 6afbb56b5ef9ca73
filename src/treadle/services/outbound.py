"""Requests to addresses that others named: judged, without redirects, with little read."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio

from treadle.errors import extra
from treadle.services.notifier_addresses import AddressRefused, Rules, checked_addresses

if TYPE_CHECKING:
    import ssl

    import httpx2

MOST_READ = 64 * 1024
MOST_ADDRESSES = 4


def need_httpx() -> None:
    """Refuse to run where nothing could ever be sent."""
    with extra("webhooks", "requests to webhooks and agents need httpx2"):
        import httpx2  # noqa: F401


@asynccontextmanager
async def transport(connections: int = 2, *, keep: int = 1) -> AsyncIterator[Any]:
    """The bare transport: no proxies, no cookies, no redirects, no decompression."""
    need_httpx()
    import httpx2

    # Its messages would show paths, and paths can be secrets.
    logging.getLogger("httpcore2").setLevel(logging.WARNING)
    limits = httpx2.Limits(
        max_connections=connections, max_keepalive_connections=keep, keepalive_expiry=20
    )
    made = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
    try:
        yield made
    finally:
        with anyio.move_on_after(2, shield=True):
            await made.aclose()


async def request(
    transport: Any,
    method: str,
    url: "httpx2.URL",
    *,
    rules: Rules,
    allowed: bool,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> "httpx2.Response":
    """Send to an address of the host that was judged a moment ago; the answer is not read yet."""
    import httpx2

    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.raw_host.decode("ascii")
    addresses = await checked_addresses(url.scheme, host, port, rules=rules, allowed=allowed)
    seconds = rules.timeout_s
    last: Exception = AddressRefused("the name has no address")
    for address in addresses[:MOST_ADDRESSES]:
        sent = httpx2.Request(
            method,
            url.copy_with(host=address),
            headers={
                "host": url.netloc.decode("ascii"),
                "accept-encoding": "identity",
                "user-agent": "treadle",
                **headers,
            },
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
            response: httpx2.Response = await transport.handle_async_request(sent)
            return response
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            last = error  # nothing was sent: the next address may be reachable
    raise last


async def beginning(response: "httpx2.Response", most: int = MOST_READ) -> bytes:
    """The first bytes of an answer, not decompressed; the rest is never read."""
    kept = bytearray()
    async for chunk in response.stream:  # type: ignore[union-attr]
        kept += chunk[: most - len(kept)]
        if len(kept) >= most:
            break
    return bytes(kept)


@cache
def _tls() -> "ssl.SSLContext":
    """One for all: reading the certificates takes time and memory.

    SSL_CERT_FILE and SSL_CERT_DIR name authorities of one's own; nothing else is taken from there.
    """
    import httpx2

    return httpx2.create_ssl_context(trust_env=True)
