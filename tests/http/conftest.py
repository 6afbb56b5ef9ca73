"""A real server process on a real database, and HTTP clients for it.

Starting a server takes longer than most tests, so they share one, and its database is emptied
before each. A test that needs other settings, or ends its server, starts its own with `serve`.
"""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.drivers.databases import SEEDS, NewDatabase, Spares
from tests.drivers.http.lossy_proxy import Flaky, flaky
from tests.drivers.http.servers import Conn, Serve, Served, served


@pytest.fixture(scope="session")
def server(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server that the tests share."""
    folder = tmp_path_factory.mktemp("server")
    with new_database() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute(SEEDS.encode())
        with served(url, folder / "server.log") as running:
            yield running


# Of a file: one of them has a server of its own.
@pytest.fixture(scope="module")
def connections(server: Served) -> Iterator[Spares]:
    """Connections to the database of `server` that one test hands to the next."""
    connections = Spares(server.database_url)
    yield connections
    connections.close()


@pytest.fixture
def sql(connections: Spares) -> Iterator[Conn]:
    """A connection to the database of `server`, which is empty now."""
    connections.empty()
    yield connections.take()
    connections.give_back()


@pytest.fixture
def http(server: Served, sql: Conn) -> Iterator[httpx2.Client]:
    """A client of `server`, on an empty database."""
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


@pytest.fixture
def serve(new_database: NewDatabase, tmp_path: Path) -> Iterator[Serve]:
    """Start a server of the test's own: `serve("--host", "0.0.0.0", database_url=…, port=…)`."""
    numbers = itertools.count()
    with ExitStack() as stack:

        def start(*arguments: str, database_url: str | None = None, **settings: object) -> Served:
            url = database_url or stack.enter_context(new_database())
            log = tmp_path / f"server-{next(numbers)}.log"
            return stack.enter_context(served(url, log, *arguments, **settings))

        yield start


@pytest.fixture
def way(server: Served, sql: Conn) -> Iterator[Flaky]:
    """A proxy in front of the server that loses selected messages."""
    with flaky(server.url) as made:
        yield made
