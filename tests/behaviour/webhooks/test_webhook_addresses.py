"""Events go to public addresses only, unless both the webhook and the settings allow others."""

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from tests.drivers.webhooks import Receiver
from treadle.db.webhooks import WebhookTarget
from treadle.services import outbound
from treadle.services.notifier.http import Answer, http_sender
from treadle.services.outbound import AddressRefused, OutboundPolicy, check_addresses, is_public

PUBLIC = [
    *("93.184.216.34", "8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1"),
    *("2606:4700::1111", "2a00:1450:4001::200e", "::ffff:8.8.8.8", "64:ff9b::808:808"),
    "2002:808:808::1",
    # Almost the form of an ISATAP host.
    *("2606:4700::5eff:a00:1", "2606:4700::100:5efe:a00:1", "2606:4700::5efe:a00:1:1"),
]
PRIVATE = [
    *("127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "::1", "fc00::1", "fd12:3456::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1"),
    # ISATAP: the last half holds the IPv4 address, under a prefix of the internet or one's own.
    *("2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1", "2606:4700::5efe:127.0.0.1"),
    *("2606:4700::5efe:192.168.1.1", "2606:4700:0:1:200:5efe:172.16.0.1", "fd12::5efe:10.0.0.1"),
    *("2606:4700::5efe:8.8.8.8", "2606:4700::200:5efe:8.8.8.8"),
]
NEVER = [
    *("0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.250"),
    *("255.255.255.255", "240.0.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.7"),
    *("203.0.113.9", "192.88.99.1"),
    *("::", "fe80::1", "fe80::1%1", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "2001:10::1"),
    *("::7f00:1", "::ffff:169.254.169.254", "64:ff9b:1::1", "100::1", "3fff::1", "5f00::1"),
    # Where clouds keep their metadata.
    *(
        "100.100.100.200",
        "::ffff:100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
    ),
    # Private ones behind a gateway of the internet.
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::1", "2002:a00:1::1", "2002:a9fe:a9fe::1"),
    # Teredo, IPv4-compatible, translated locally.
    *("2001:0:4136:e378:8000:63bf:f5ff:fffe", "::10.0.0.1", "::8.8.8.8", "64:ff9b:1::a00:1"),
    # ISATAP to or under what is refused always.
    *("2606:4700::5efe:169.254.169.254", "2606:4700::200:5efe:169.254.169.254"),
    *("fe80::5efe:10.0.0.1", "fe80::200:5efe:8.8.8.8", "2001:db8::5efe:10.0.0.1"),
    *("2606:4700::5efe:0.0.0.0", "2606:4700::5efe:100.100.100.200", "2002:a00:1::5efe:169.254.0.1"),
]
OPEN = OutboundPolicy(private=True, http=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet(address: str) -> None:
    assert is_public(address)
    check_addresses("https", 443, [address], OutboundPolicy(), False)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_needs_both_permissions(address: str) -> None:
    for rules, allowed in (
        (OutboundPolicy(), False),
        (OutboundPolicy(private=True), False),
        (OutboundPolicy(), True),
    ):
        with pytest.raises(AddressRefused, match="is private"):
            check_addresses("https", 443, [address], rules, allowed)
    check_addresses("http", 8000, [address], OutboundPolicy(private=True), True)


@pytest.mark.parametrize("address", NEVER)
def test_an_address_that_is_refused_always(address: str) -> None:
    with pytest.raises(AddressRefused, match="never allowed"):
        check_addresses("https", 443, [address], OPEN, True)


@pytest.mark.parametrize("bad", ["127.0.0.1", "169.254.169.254", "fe80::1"])
def test_one_bad_address_among_good_ones_is_enough(bad: str) -> None:
    with pytest.raises(AddressRefused):
        check_addresses("https", 443, ["8.8.8.8", bad, "1.1.1.1"], OutboundPolicy(), False)


@pytest.mark.parametrize(
    ("scheme", "port", "words"),
    [("http", 80, "not encrypted"), ("https", 22, "port 22"), ("https", 443, None)],
)
def test_a_private_address_beside_a_public_one_opens_nothing_for_that(
    scheme: str, port: int, words: str | None
) -> None:
    addresses = ["8.8.8.8", "10.0.0.1"]
    if words is None:
        check_addresses(scheme, port, addresses, OutboundPolicy(private=True), True)
    else:
        with pytest.raises(AddressRefused, match=words):
            check_addresses(scheme, port, addresses, OutboundPolicy(private=True), True)


@pytest.mark.parametrize(
    ("scheme", "port", "rules", "words"),
    [
        ("https", 443, OutboundPolicy(), None),
        ("https", 8443, OutboundPolicy(), "port 8443"),
        ("https", 22, OutboundPolicy(), "port 22"),
        ("https", 8443, OutboundPolicy(ports=frozenset({8443})), None),
        ("http", 80, OutboundPolicy(), "not encrypted"),
        ("http", 80, OutboundPolicy(http=True), None),
        ("http", 443, OutboundPolicy(http=True), "port 443"),
        ("redis", 6379, OutboundPolicy(), "not encrypted"),
        ("rediss", 6379, OutboundPolicy(), None),
        ("rediss", 443, OutboundPolicy(), "port 443"),
    ],
)
def test_the_way_to_a_public_address(
    scheme: str, port: int, rules: OutboundPolicy, words: str | None
) -> None:
    if words is None:
        check_addresses(scheme, port, ["8.8.8.8"], rules, True)
    else:
        with pytest.raises(AddressRefused, match=words):
            check_addresses(scheme, port, ["8.8.8.8"], rules, True)


async def send(url: str, rules: OutboundPolicy = OPEN, allow_private: bool = True) -> Answer:
    target = WebhookTarget("t", uuid4(), url, "standard", None, 1, [], allow_private)
    async with http_sender(target, rules) as sender:
        return await sender.send("msg_1", "test", json.dumps({"data": {}}))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Give a name other addresses each time it is asked for; says which names were asked."""
    real = anyio.getaddrinfo

    def give(*answers: list[str]) -> list[str]:
        asked: list[str] = []

        async def look(host: Any, port: Any, **options: Any) -> Any:
            if host[:1].isdigit():
                return await real(host, port, **options)
            asked.append(host)
            answer = answers[min(len(asked), len(answers)) - 1]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in answer]

        monkeypatch.setattr(anyio, "getaddrinfo", look)
        return asked

    return give


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::1]", "0177.0.0.1"]
)
async def test_no_way_of_writing_this_host_gets_past(receiver: Receiver, host: str) -> None:
    answer = await send(
        f"http://{host}:{receiver.port}/x", OutboundPolicy(http=True), allow_private=False
    )

    assert re.search("is private|^InvalidURL", answer.error or "")
    assert receiver.tries == {}


async def test_a_host_name_is_resolved_and_checked_at_every_delivery(
    receiver: Receiver, names: Callable[..., list[str]]
) -> None:
    asked = names(["127.0.0.1"], ["169.254.169.254"])
    url = f"http://hooks.example.org:{receiver.port}/x?y=1"

    first = await send(url)
    second = await send(url)

    assert (first.error, first.status) == (None, 200)
    [message] = receiver.got["/x?y=1"]
    assert message.headers["host"] == f"hooks.example.org:{receiver.port}"
    assert second.error == "the address is neither public nor private and is never allowed"
    # Once each: the connection itself asks for no name again.
    assert asked == ["hooks.example.org"] * 2


async def test_the_next_address_is_tried_when_one_cannot_be_reached(
    receiver: Receiver, names: Callable[..., list[str]]
) -> None:
    names(["127.0.0.2", "127.0.0.1"])

    answer = await send(f"http://hooks.example.org:{receiver.port}/x")

    assert answer.error is None


async def test_a_name_without_an_address_is_a_failure() -> None:
    answer = await send("https://nobody.invalid/x")

    assert answer.error is not None
    assert answer.status is None


async def test_proxies_of_the_environment_are_not_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert (await send(receiver.url("x"))).error is None


@pytest.fixture
def certified(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The sides of a server that is hooks.example.org and of a client that believes it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=test", "-addext"]
    command += ["subjectAltName=DNS:hooks.example.org", "-keyout", str(key), "-out"]
    subprocess.run([*command, str(certificate)], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


@pytest.mark.parametrize(
    ("host", "error"), [("hooks.example.org", None), ("other.example.org", "ConnectError: ")]
)
async def test_the_certificate_is_that_of_the_name(
    certified: tuple[ssl.SSLContext, ssl.SSLContext],
    names: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    error: str | None,
) -> None:
    server, client = certified
    names(["127.0.0.1"])
    monkeypatch.setattr(outbound, "_tls", lambda: client)
    with Receiver(tls=server) as receiver:
        answer = await send(f"https://{host}:{receiver.port}/x")

    assert (answer.error or "").startswith(error or "")
    assert (answer.status, len(receiver.got["/x"])) == ((200, 1) if error is None else (None, 0))
