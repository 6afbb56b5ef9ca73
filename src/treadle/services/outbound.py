"""Requests to addresses that others named: checked, without redirects, with little read.

Allowed are public addresses, and private ones only where the settings say so. A name is resolved
at every delivery, all of its addresses are checked, and the connection goes to one that was
checked: a name that points elsewhere a moment later gains nothing.
"""

import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from treadle.errors import InvalidArgument, extra
from treadle.settings import Settings

if TYPE_CHECKING:
    import ssl

    import httpx2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"https": 443, "http": 80, "redis": 6379, "rediss": 6379}
_PLAIN = {"http", "redis"}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
# Inside what looks global or private, or judged differently by versions of Python.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
        # Where clouds keep their metadata, beside link-local addresses.
        *("100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128"),
    )
]
_PRIVATE = [
    ipaddress.ip_network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10"),
        *("::1/128", "fc00::/7"),
    )
]
MOST_READ = 64 * 1024
MOST_ADDRESSES = 4


class AddressRefused(Exception):
    """Nothing is sent there."""


@dataclass(frozen=True)
class OutboundPolicy:
    """What the settings of this process allow."""

    private: bool = False
    http: bool = False
    ports: frozenset[int] = frozenset()
    timeout_s: float = 10.0
    # For messages: who connects, to what, and how the settings begin.
    who: str = "notifier"
    what: str = "webhook"

    @property
    def prefix(self) -> str:
        return "TREADLE_WEBHOOK" if self.what == "webhook" else "TREADLE_DISPATCH"

    @classmethod
    def for_webhooks(cls, settings: Settings) -> "OutboundPolicy":
        return cls(
            private=settings.webhook_private,
            http=settings.webhook_http,
            ports=frozenset(settings.webhook_ports),
            timeout_s=settings.webhook_timeout_s,
        )

    @classmethod
    def for_agents(cls, settings: Settings) -> "OutboundPolicy":
        return cls(
            private=settings.dispatch_private,
            http=settings.dispatch_http,
            ports=frozenset(settings.dispatch_ports),
            timeout_s=settings.queue_dispatch_timeout_s,
            who="dispatcher",
            what="agent",
        )


def embedded_ipv4(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, where that is what is reached in the end."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(text: str) -> bool:
    """Whether an address is one of the internet."""
    address = ipaddress.ip_address(text)
    return _isatap(address) is None and _is_global(embedded_ipv4(address))


def is_private(text: str) -> bool:
    """Whether an address belongs to this host or to a network of one's own."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    tunnelled = _isatap(address)
    if tunnelled is not None:
        # Under any prefix such a host is reached through an IPv4 network of one's own.
        return all(_is_global(each) or _is_own(each) for each in (address, tunnelled))
    return _is_own(address)


def _isatap(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address of an ISATAP host (RFC 5214): the last half is [02]00:5efe:a.b.c.d."""
    number = int(address)
    if isinstance(address, ipaddress.IPv6Address) and (number >> 32) & 0xFDFFFFFF == 0x5EFE:
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return None


def _is_global(address: Address) -> bool:
    if _within(address, _NEVER):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_V6:
        return False
    return address.is_global and not address.is_multicast


def _is_own(address: Address) -> bool:
    return _within(address, _PRIVATE) and not _within(address, _NEVER)


def check_public_url(url: str) -> None:
    """Say at once what would be refused later, where that shows without a lookup."""
    try:
        host = urlsplit(url).hostname or ""
        private = host == "localhost" or is_private(host)
    except ValueError:
        return
    if private:
        raise InvalidArgument(
            f"{host} is a private address",
            hint="Allow that: --allow-private, over HTTP allow_private",
            argument="url",
        )


def _within(address: Address, networks: list[Network]) -> bool:
    return any(address in each for each in networks if each.version == address.version)


def check_addresses(
    scheme: str, port: int, addresses: list[str], policy: OutboundPolicy, allowed: bool
) -> None:
    """Refuse unless every address is public, or private with both permissions."""
    if not addresses:
        raise AddressRefused("the name has no address")
    strange = [each for each in addresses if not is_public(each)]
    if strange:
        _check_nonpublic(strange, policy, allowed)
    # What has both permissions may use any port, and needs no TLS; what is public may not.
    if len(strange) < len(addresses):
        _check_public(scheme, port, policy)


def _check_nonpublic(strange: list[str], policy: OutboundPolicy, allowed: bool) -> None:
    if not all(is_private(each) for each in strange):
        raise AddressRefused("the address is neither public nor private: refused always")
    if not allowed:
        raise AddressRefused(f"the address is private: the {policy.what} needs allow_private")
    if not policy.private:
        raise AddressRefused(
            f"the address is private: the {policy.who} needs {policy.prefix}_PRIVATE=1"
        )


def _check_public(scheme: str, port: int, policy: OutboundPolicy) -> None:
    if scheme in _PLAIN and not policy.http:
        raise AddressRefused(
            f"{scheme} is not encrypted: the {policy.who} needs {policy.prefix}_HTTP=1"
        )
    if port != PORTS.get(scheme) and port not in policy.ports:
        raise AddressRefused(f"port {port} is not among {policy.prefix}_PORTS")


async def checked_addresses(
    scheme: str, host: str, port: int, *, policy: OutboundPolicy, allowed: bool
) -> list[str]:
    """The addresses of a host, all of them judged; connect to these and to nothing else."""
    if scheme not in PORTS:
        raise AddressRefused(f"{scheme} is not known")
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    check_addresses(scheme, port, addresses, policy, allowed)
    return addresses


def require_httpx() -> None:
    """Refuse to run where nothing could ever be sent."""
    with extra("webhooks", "requests to webhooks and agents need httpx2"):
        import httpx2  # noqa: F401


@asynccontextmanager
async def transport(connections: int = 2, *, keep: int = 1) -> AsyncIterator[Any]:
    """The bare transport: no proxies, no cookies, no redirects, no decompression."""
    require_httpx()
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
    policy: OutboundPolicy,
    allowed: bool,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> "httpx2.Response":
    """Send to an address of the host that was judged a moment ago; the answer is not read yet."""
    import httpx2

    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.raw_host.decode("ascii")
    addresses = await checked_addresses(url.scheme, host, port, policy=policy, allowed=allowed)
    seconds = policy.timeout_s
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


async def read_prefix(response: "httpx2.Response", most: int = MOST_READ) -> bytes:
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
