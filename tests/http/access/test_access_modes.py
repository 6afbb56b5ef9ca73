"""A server needs no token on loopback until one exists, and always needs one elsewhere."""

import signal
from pathlib import Path

import anyio
import httpx2
import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Serve, Served
from tests.drivers.http.sockets import ask, head
from tests.drivers.http.tokens import accepted_for, bearer, create
from tests.drivers.processes.children import Child, until
from treadle.api.server import bind, is_local
from treadle.errors import ConfigurationError

READ = "/openapi.json"


async def test_a_server_without_tokens_logs_that_none_is_required(
    http: httpx2.Client, server: Served
) -> None:
    assert http.get(READ).status_code == 200
    assert server.child.events("server.token_not_required", level="warning")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost", 200), ("LOCALHOST:8420", 200), ("127.0.0.1", 200), ("[::1]:1", 200)),
        *(("evil.example", 403), ("evil.example:8420", 403), ("localhost.evil.example", 403)),
        *(("127.0.0.1.nip.io", 403), ("127.0.0.2", 403), ("0.0.0.0", 403), ("[::]", 403)),
        *(("localhost.", 403), ("127.0.0.1:x", 400), ("[", 400), ("a b", 400), ("a/b", 400)),
        *(("me@localhost", 400), ("", 400)),
    ],
)
@pytest.mark.requirement("B10")
def test_a_host_name_that_resolves_to_this_host_is_rejected(
    server: Served, http: httpx2.Client, host: str, status: int
) -> None:
    answer = ask(server.url, head("GET", READ, host=host))

    assert answer.status == status
    if status != 200:
        assert answer.problem["status"] == status


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", ["Origin: https://evil.example"], 403),
        ("POST", ["Origin: null"], 403),
        ("POST", ["Origin: http://localhost:3000"], 403),
        ("POST", ["Origin: http://localhost.evil.example"], 403),
        ("POST", ["Sec-Fetch-Site: cross-site"], 403),
        ("POST", ["Sec-Fetch-Site: same-site"], 403),
        ("DELETE", ["Sec-Fetch-Site: cross-site"], 403),
        ("GET", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"], 403),
        ("POST", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], 403),
        ("GET", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], 200),
        ("POST", ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"], 405),
        ("GET", ["Sec-Fetch-Site: none"], 200),
        ("GET", ["X-Forwarded-For: 10.0.0.1"], 401),
        ("GET", ["Forwarded: for=10.0.0.1"], 401),
        ("GET", ["Via: 1.1 proxy"], 401),
        ("GET", ["X-Forwarded-Proto: https"], 401),
        ("GET", ["X-Forwarded-Port: 443"], 401),
        ("GET", ["X-Forwarded-Server: proxy"], 401),
        ("GET", ["X-Forwarded-Prefix: /treadle"], 401),
        ("GET", ["X-Real-IP: 10.0.0.1"], 401),
    ],
)
def test_pages_of_other_sites_and_proxies_get_nothing_from_an_open_server(
    server: Served, http: httpx2.Client, method: str, headers: list[str], status: int
) -> None:
    answer = ask(server.url, head(method, READ, *headers))

    assert answer.status == status
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.requirement("B10")
def test_the_first_token_closes_a_server_and_its_end_does_not_open_it(serve: Serve) -> None:
    server = serve(allowed_hosts="treadle.test, other.test")
    with (
        httpx2.Client(base_url=server.url, timeout=30) as client,
        psycopg.connect(server.database_url, autocommit=True) as sql,
    ):
        assert client.get(READ).status_code == 200
        assert ask(server.url, head("GET", READ, host="Treadle.Test:80")).status == 200
        assert ask(server.url, head("GET", READ, host="third.test")).status == 403

        token = create(sql, "first")
        assert accepted_for(client, READ) < 5
        assert client.get(READ, headers=bearer(token)).status_code == 200
        # Under any host name: the token identifies the caller.
        named = {**bearer(token), "Host": "third.test", "Origin": "https://third.test"}
        assert client.get(READ, headers=named).status_code == 200

        sql.execute("select treadle.revoke_token('first')")
        anyio.run(until, lambda: client.get(READ, headers=bearer(token)).status_code == 401)
        assert client.get(READ).status_code == 401
        assert client.get("/healthz").status_code == 200

    assert len(server.child.events("server.token_required")) == 1
    server.child.send(signal.SIGTERM)
    assert anyio.run(server.child.exit_code, 30) == 0
    assert server.child.events("server.stopped")


@pytest.mark.requirement("B10")
def test_another_address_is_refused_before_there_is_a_token_and_closed_with_one(
    new_database: NewDatabase, serve: Serve, tmp_path: Path
) -> None:
    with new_database() as url, psycopg.connect(url, autocommit=True) as sql:
        create(sql, "old", expires_s=60)
        sql.execute("update treadle.api_tokens set expires_at = clock_timestamp()")
        log = tmp_path / "refused.log"
        child = Child(["server", "--host", "0.0.0.0", "--port", "0"], log=log, database_url=url)
        try:
            assert anyio.run(child.exit_code, 30) == 2
        finally:
            child.end()
        assert "there is no valid token" in log.read_text()
        assert "treadle tokens create" in log.read_text()

        create(sql, "first")
        server = serve("--host", "0.0.0.0", database_url=url)
        # Before anybody has asked anything.
        sql.execute("select treadle.revoke_token(name) from treadle.token_status")
        here = server.url.replace("0.0.0.0", "127.0.0.1")
        with httpx2.Client(base_url=here, timeout=30) as client:
            assert client.get(READ).status_code == 401
            second = bearer(create(sql, "second"))
            assert client.get(READ, headers=second).status_code == 200
            assert client.get(READ).status_code == 401
        assert not server.child.events("server.token_not_required")


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("localhost", True), ("127.3.2.1", True), ("0.0.0.0", False)],
)
def test_which_sockets_only_this_host_can_reach(host: str, local: bool) -> None:
    sockets = bind(host, 0)
    try:
        assert len(sockets) > 0
        assert all(is_local(each) for each in sockets) is local
    finally:
        for each in sockets:
            each.close()


def test_an_address_that_is_taken_or_not_ours_is_refused(server: Served) -> None:
    port = int(server.url.rsplit(":", 1)[1])

    with pytest.raises(
        ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1 port {port}"
    ) as taken:
        bind("127.0.0.1", port)
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        bind("192.0.2.1", 0)

    assert taken.value.exit_code == 2
