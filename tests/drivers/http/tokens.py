"""Servers that require tokens, and tokens for them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Conn, Served, served
from treadle.api import tokens

# A server remembers what a token may do for a moment; the tests of how long keep that moment.
FORGETFUL = [(tokens, "REMEMBERED_S", 0.2)]
SCOPES = ("read", "enqueue", "work", "operate", "admin")


def create(sql: Conn, name: str, *scopes: str, **settings: object) -> str:
    """The text of a new token."""
    given = json.dumps({"scopes": scopes or ["read"], **settings})
    found = sql.execute("select treadle.create_token(%s, %s)", (name, given)).fetchone()
    assert found is not None
    return str(found[0])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def accepted_for(client: httpx2.Client, path: str) -> float:
    """Ask until an answer is 401: how long after this call the last accepted request was sent.

    The response time does not count: a server that accepts a request sent at some time did not know
    of the revocation at that time.
    """
    began = time.monotonic()
    last = 0.0
    while True:
        sent = time.monotonic() - began
        if client.get(path).status_code == 401:
            return last
        assert sent < 40, "it is still accepted"
        last = sent


class Closed:
    """A server that requires tokens, with one token for each scope."""

    def __init__(self, server: Served, sql: Conn, tokens: dict[str, str]) -> None:
        self.server = server
        self.sql = sql
        self.tokens = tokens

    def client(self, token: str | None = None) -> httpx2.Client:
        headers = bearer(token) if token else {}
        return httpx2.Client(base_url=self.server.url, headers=headers, timeout=30)


@contextmanager
def closed(new_database: NewDatabase, folder: Path, **settings: Any) -> Iterator[Closed]:
    """Run such a server until the block ends."""
    with new_database() as url, psycopg.connect(url, autocommit=True) as sql:
        made = {scope: create(sql, scope, scope) for scope in SCOPES}
        with served(url, folder / "server.log", **settings) as server:
            yield Closed(server, sql, made)
