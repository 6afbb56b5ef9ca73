"""Requests to URLs that users supply: to checked addresses, without redirects, with limited reads.

Public addresses are allowed, and private ones only if the settings allow them. The host name is
resolved for every request, all its addresses are checked, and the connection uses a checked
address. So changing the DNS record after the check (DNS rebinding) has no effect.
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
# Ranges inside global or private ones, or classified differently by versions of Python.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
        # Metadata services of clouds, in addition to link-local addresses.
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
MAX_READ_BYTES = 64 * 1024
MAX_ADDRESSES = 4


class AddressRefused(Exception):
    """The policy does not allow this address."""


@dataclass(frozen=True)
class OutboundPolicy:
    """The addresses that the settings of this process allow."""

    private: bool = False
    http: bool = False
    ports: frozenset[int] = frozenset()
    timeout_s: float = 10.0
    # For messages: the process that connects, and the kind of endpoint.
    process: str = "notifier"
    endpoint: str = "webhook"

    @property
    def prefix(self) -> str:
        """The prefix of the settings."""
        return "TREADLE_WEBHOOK" if self.endpoint == "webhook" else "TREADLE_DISPATCH"

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
            process="dispatcher",
            endpoint="agent",
        )


def embedded_ipv4(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, if it does, else the address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(text: str) -> bool:
    """Return whether an address is public."""
    address = ipaddress.ip_address(text)
    return _isatap(address) is None and _is_global(embedded_ipv4(address))


def is_private(text: str) -> bool:
    """Return whether an address belongs to this host or to a private network."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    tunnelled = _isatap(address)
    if tunnelled is not None:
        # Whatever the prefix, such a host is reached through a private IPv4 network.
        return all(_is_global(each) or _is_own(each) for each in (address, tunnelled))
    return _is_own(address)


def _isatap(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address of an ISATAP host (RFC 5214), which ends in [02]00:5efe:a.b.c.d."""
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


def is_loopback_url(url: str) -> bool:
    """Return whether a URL names this host, as far as this is visible without a DNS lookup."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_public_url(url: str) -> None:
    """Reject a URL with a private address early, if no DNS lookup is needed to see it."""
    try:
        host = urlsplit(url).hostname or ""
        private = host == "localhost" or is_private(host)
    except ValueError:
        return
    if private:
        raise InvalidArgument(
            f"{host} is a private address",
            hint="Allow private addresses: --allow-private, or allow_private over HTTP.",
            argument="url",
        )


def _within(address: Address, networks: list[Network]) -> bool:
    return any(address in each for each in networks if each.version == address.version)


def check_addresses(
    scheme: str, port: int, addresses: list[str], policy: OutboundPolicy, allowed: bool
) -> None:
    """Raise AddressRefused unless every address is public, or private with both permissions."""
    if not addresses:
        raise AddressRefused("the host name has no address")
    nonpublic = [each for each in addresses if not is_public(each)]
    if nonpublic:
        _check_nonpublic(nonpublic, policy, allowed)
    # A private address with both permissions may use any port and needs no TLS.
    if len(nonpublic) < len(addresses):
        _check_public(scheme, port, policy)


def _check_nonpublic(addresses: list[str], policy: OutboundPolicy, allowed: bool) -> None:
    if not all(is_private(each) for each in addresses):
        raise AddressRefused("the address is neither public nor private and is never allowed")
    if not allowed:
        raise AddressRefused(f"the address is private: the {policy.endpoint} needs allow_private")
    if not policy.private:
        raise AddressRefused(
            f"the address is private: the {policy.process} needs {policy.prefix}_PRIVATE=1"
        )


def _check_public(scheme: str, port: int, policy: OutboundPolicy) -> None:
    if scheme in _PLAIN and not policy.http:
        raise AddressRefused(
            f"{scheme} is not encrypted: the {policy.process} needs {policy.prefix}_HTTP=1"
        )
    if port != PORTS.get(scheme) and port not in policy.ports:
        raise AddressRefused(f"port {port} is not in {policy.prefix}_PORTS")


async def checked_addresses(
    scheme: str, host: str, port: int, *, policy: OutboundPolicy, allowed: bool
) -> list[str]:
    """Resolve a host and check all its addresses; connect only to the addresses returned."""
    if scheme not in PORTS:
        raise AddressRefused(f"the scheme {scheme} is not supported")
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    check_addresses(scheme, port, addresses, policy, allowed)
    return addresses


def require_httpx() -> None:
    """Raise MissingExtra if httpx2 is not installed."""
    with extra("webhooks", "requests to webhooks and agents need httpx2"):
        import httpx2  # noqa: F401


@asynccontextmanager
async def transport(connections: int = 2, *, keep: int = 1) -> AsyncIterator[Any]:
    """Open a transport without proxies, cookies, redirects and decompression."""
    require_httpx()
    import httpx2

    # Debug logs would contain paths, which can contain secrets.
    logging.getLogger("httpcore2").setLevel(logging.WARNING)
    limits = httpx2.Limits(
        max_connections=connections, max_keepalive_connections=keep, keepalive_expiry=20
    )
    opened = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
    try:
        yield opened
    finally:
        with anyio.move_on_after(2, shield=True):
            await opened.aclose()


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
    """Send a request to a checked address of the host; the body of the response is not read."""
    import httpx2

    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.raw_host.decode("ascii")
    addresses = await checked_addresses(url.scheme, host, port, policy=policy, allowed=allowed)
    seconds = policy.timeout_s
    last: Exception = AddressRefused("the host name has no address")
    for address in addresses[:MAX_ADDRESSES]:
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


async def read_prefix(response: "httpx2.Response", max_bytes: int = MAX_READ_BYTES) -> bytes:
    """Read the first bytes of a response without decompression, and no more."""
    prefix = bytearray()
    async for chunk in response.stream:  # type: ignore[union-attr]
        prefix += chunk[: max_bytes - len(prefix)]
        if len(prefix) >= max_bytes:
            break
    return bytes(prefix)


@cache
def _tls() -> "ssl.SSLContext":
    """Return the shared TLS context: loading the certificates takes time and memory.

    SSL_CERT_FILE and SSL_CERT_DIR can name additional authorities.
    """
    import httpx2

    return httpx2.create_ssl_context(trust_env=True)
