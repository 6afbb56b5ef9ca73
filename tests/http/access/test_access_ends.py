"""Revoked tokens end running requests, and unknown callers cost little."""

import base64
import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import httpx2
import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Conn, Serve
from tests.drivers.http.streams import stream
from tests.drivers.http.tokens import FORGETFUL, Closed, bearer, closed, create
from tests.drivers.http.v1 import code_of, enqueue, register
from tests.drivers.processes.children import until

READ = "/v1/queues"
REFUSED = (401, "unauthenticated")
pytestmark = pytest.mark.requirement("B10")


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("closed"), constants=FORGETFUL) as found:
        register(found.client(found.tokens["admin"]))
        yield found


@pytest.fixture(scope="module")
def limited(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("limited"), rate_per_s=5) as found:
        yield found


@contextmanager
def locked(server: Closed) -> Iterator[None]:
    """Make every lookup of a token in the database wait."""
    with psycopg.connect(server.server.database_url) as other:
        other.execute("lock table treadle.api_tokens in access exclusive mode")
        yield


def stranger() -> dict[str, str]:
    """The header of a well-formed token that does not exist."""
    text = f"trd_{os.urandom(6).hex()}_{'A' * 43}"
    checksum = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:6]
    return bearer(text + checksum)


def is_idle(sql: Conn) -> bool:
    return sql.execute("select from treadle.idle_queues").fetchone() is not None


def test_a_claim_that_waits_takes_nothing_when_its_token_has_ended(guarded: Closed) -> None:
    agent = bearer(create(guarded.sql, "agent", "work"))
    with guarded.client(guarded.tokens["admin"]) as admin, ThreadPoolExecutor() as threads:
        waiting = threads.submit(
            admin.post, "/v1/claims", json={"agent": "a", "wait_seconds": 30}, headers=agent
        )
        anyio.run(until, lambda: is_idle(guarded.sql))
        guarded.sql.execute("select treadle.revoke_token('agent')")
        anyio.run(until, lambda: admin.get(READ, headers=agent).status_code == 401)

        task = enqueue(admin)

        assert code_of(waiting.result()) == REFUSED
        assert admin.get(f"/v1/tasks/{task}").json()["status"] == "ready"


def test_a_revoked_token_gets_no_result(guarded: Closed) -> None:
    reader = bearer(create(guarded.sql, "reader", "read"))
    with guarded.client(guarded.tokens["admin"]) as admin, ThreadPoolExecutor() as threads:
        task = enqueue(admin)
        path = f"/v1/tasks/{task}/result"
        waiting = threads.submit(admin.get, path, params={"wait_seconds": 30}, headers=reader)
        anyio.run(until, lambda: used(guarded.sql, "reader"))
        guarded.sql.execute("select treadle.revoke_token('reader')")
        anyio.run(until, lambda: admin.get(READ, headers=reader).status_code == 401)

        admin.post(f"/v1/tasks/{task}/cancel")

        assert code_of(waiting.result()) == REFUSED


def used(sql: Conn, name: str) -> bool:
    row = sql.execute(
        "select last_used_at from treadle.token_status where name = %s", (name,)
    ).fetchone()
    return row is not None and row[0] is not None


def test_streams_opened_without_a_token_end_when_the_first_token_is_created(serve: Serve) -> None:
    server = serve(constants=FORGETFUL)
    with (
        psycopg.connect(server.database_url, autocommit=True) as sql,
        httpx2.Client(base_url=server.url, timeout=30) as client,
        stream(server.url) as opened,
        ThreadPoolExecutor() as threads,
    ):
        register(client)
        waiting = threads.submit(client.post, "/v1/claims", json={"agent": "a", "wait_seconds": 30})
        anyio.run(until, lambda: is_idle(sql))
        create(sql, "first")
        anyio.run(until, lambda: client.get(READ).status_code == 401)

        sql.execute("select treadle.emit_event('after')")
        sql.execute("select treadle.enqueue_task('default', 'code', '{}')")

        # The stream may still send the event of the token, and nothing after it.
        told = []
        with suppress(EOFError):
            while "after" not in told:
                told += [event["kind"] for event in opened.events(1)]
        assert set(told) <= {"token.created"}
        assert code_of(waiting.result()) == REFUSED


def test_an_unknown_caller_above_its_rate_limit_causes_no_lookup(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    with closed(new_database, tmp_path, rate_per_s=0.02) as strict, strict.client() as client:
        assert client.get(READ, headers={"Authorization": "Bearer x"}).status_code == 401
        with locked(strict):
            answer = client.get(READ, headers=stranger(), timeout=20)
            assert code_of(answer) == (429, "too-many-requests")


def test_an_unknown_token_is_looked_up_once_in_a_while(limited: Closed) -> None:
    anonymous = stranger()
    with limited.client() as client:
        assert client.get(READ, headers=anonymous).status_code == 401
        with locked(limited):
            assert client.get(READ, headers=anonymous, timeout=5).status_code == 401


def test_a_known_token_is_not_limited_by_unknown_ones_of_its_address(limited: Closed) -> None:
    many = [bearer(create(limited.sql, f"t{number}")) for number in range(15)]
    with limited.client() as client:
        # The address may have been asked from too often, by another test.
        anyio.run(until, lambda: client.get(READ, headers=many[0]).status_code == 200)
        # One after the other: each token is unknown once, and then has a rate of its own.
        assert [client.get(READ, headers=each).status_code for each in many] == [200] * 15
        # Until it is looked up again.
        time.sleep(2.1)
        while client.get(READ, headers=stranger()).status_code != 429:
            pass
        assert client.get(READ, headers=many[0]).status_code == 200
