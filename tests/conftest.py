"""One PostgreSQL server for the run, and databases on it.

The server is the embedded one, or that of `TREADLE_TEST_DATABASE_URL` (a superuser's URL).
`TREADLE_TEST_PG_BIN` names the programs of another PostgreSQL to test on. A test gets a clone of a
template database that was migrated once; all of it is gone when the run ends. Copying a database
takes longer than most tests, so those that take `driver`, and those of workers and commands, share
one that is emptied before each, and whose clock can be set. A test that changes the schema, or
looks at it, takes `fresh`, a copy of its own, or is marked `own_database`.
"""

import gc
import itertools
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import httpcore2
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pytest_postgresql.janitor import DatabaseJanitor
from xdist.scheduler import LoadFileScheduling

from tests.drivers.databases import SEEDS, NewDatabase, OwnServer, Spares
from tests.drivers.engine import CLOCK, Connection, Driver
from tests.drivers.stores import S3, s3_server
from treadle.db.embedded import EmbeddedServer, embedded_bindir
from treadle.db.install.migrate import migrate
from treadle.db.testing import temporary_database, with_database
from treadle.errors import MissingExtra

ROLES = "treadle_operator, treadle_observer, treadle_worker, treadle_producer, treadle_owner"
# No test on the shared server needs a crash to be survived.
SHARED = {
    "fsync": "off",
    "synchronous_commit": "on",
    "max_connections": "200",
    "autovacuum_naptime": "10s",
    # A table that is being analysed delays the readers of events for a moment.
    "autovacuum_analyze_threshold": "2147483647",
}
MEMORY = "/dev/shm"
# Folders of tests with files that take many seconds.
LONG = ("http", "plans", "process")

_numbers = itertools.count(1)


def pytest_configure() -> None:
    """Stop the servers before an interrupted run ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Tests are superusers that replace functions on purpose: the clock, and broken ones.
    os.environ["TREADLE_VERIFY_CODE"] = "false"
    # Nothing that is imported and collected is ever garbage.
    gc.disable()


class FileScheduler(LoadFileScheduling):
    """Schedules whole files; all plan tests run in one process, since they share a million rows."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "tests/plans" if file.startswith("tests/plans/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduler | None:
    if config.getoption("dist") != "loadfile":
        return None
    # As they are collected: see below.
    config.option.loadscopereorder = False
    return FileScheduler(config, log)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mix the folders across processes: some tests use the CPU, others mostly wait.

    Folders with long files are done a little earlier, so that all processes end at the same time.
    """
    if not hasattr(config, "workerinput"):
        return
    folders: dict[str, dict[Path, int]] = {}
    for item in items:
        files = folders.setdefault(_folder(item), {})
        files.setdefault(item.path, len(files))

    def place(item: pytest.Item) -> float:
        folder = _folder(item)
        files = folders[folder]
        return files[item.path] / len(files) * (0.9 if folder in LONG else 1)

    items.sort(key=place)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """To read those of the system for each HTTP client takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpcore2.default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(scope="session")
def pg_bin() -> Path | None:
    """The programs of the PostgreSQL under test; None means those of the embedded one."""
    given = os.environ.get("TREADLE_TEST_PG_BIN")
    return Path(given) if given else None


@pytest.fixture(scope="session")
def psql(pg_bin: Path | None) -> str:
    """The program psql: of the server under test, else of the embedded one, else any."""
    if pg_bin is not None:
        return str(pg_bin / "psql")
    try:
        return str(embedded_bindir() / "psql")
    except MissingExtra:
        found = shutil.which("psql")
    if found is None:
        pytest.skip("psql is not installed")
    return found


@pytest.fixture(scope="session")
def server_url(pg_bin: Path | None) -> Iterator[str]:
    """A superuser's URL of the server that the tests share."""
    given = os.environ.get("TREADLE_TEST_DATABASE_URL")
    if given:
        with _without_new_roles(given):
            yield given
        return
    with _server(pg_bin, SHARED) as server:
        yield server.url()


@pytest.fixture(scope="session")
def maintenance(server_url: str) -> Iterator[Connection]:
    """A connection that makes and drops databases."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database to clone."""
    server = conninfo_to_dict(server_url)
    name = f"treadle_test_{os.getpid()}_template"
    with DatabaseJanitor(
        user=str(server.get("user") or ""),
        password=str(server["password"]) if server.get("password") else None,
        host=str(server.get("host") or ""),
        port=str(server.get("port") or ""),
        dbname=name,
        as_template=True,
    ):
        migrate(with_database(server_url, name))
        yield name


@pytest.fixture(scope="session")
def new_database(server_url: str, maintenance: Connection, template: str) -> NewDatabase:
    """Create databases with the schema, for fixtures that outlive a test."""

    @contextmanager
    def make() -> Iterator[str]:
        with _database(maintenance, template) as name:
            yield with_database(server_url, name)

    return make


@pytest.fixture
def copied_url(new_database: NewDatabase) -> Iterator[str]:
    """A fresh database with the schema."""
    with new_database() as url:
        yield url


@pytest.fixture
def database_url(copied_url: str) -> str:
    """The database of the test: a fresh one, unless its folder says otherwise."""
    return copied_url


@pytest.fixture
def empty_database_url(server_url: str, maintenance: Connection) -> Iterator[str]:
    """A fresh database without the schema."""
    with _database(maintenance) as name:
        yield with_database(server_url, name)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """An S3-compatible server."""
    with s3_server() as server:
        yield server


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """An autocommit connection to `database_url`."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def sync_conn(database_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The same for tests without a loop."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def shared_url(server_url: str, template: str) -> Iterator[str]:
    """A database with the schema for all tests that do not change the schema."""
    with temporary_database(server_url, template=template) as name:
        url = with_database(server_url, name)
        with psycopg.connect(url) as conn:
            # With the clock of the tests from the start, whichever test comes first.
            conn.execute(SEEDS.encode())
            conn.execute(CLOCK.encode())
        yield url


@pytest.fixture(scope="session")
def spares(shared_url: str) -> Iterator[Spares]:
    spares = Spares(shared_url)
    yield spares
    spares.close()


@pytest.fixture
def emptied_url(request: pytest.FixtureRequest, shared_url: str, spares: Spares) -> str:
    """The shared database, which is empty now; a fresh one for a test that is marked so."""
    if request.node.get_closest_marker("own_database"):
        return str(request.getfixturevalue("copied_url"))
    spares.empty()
    return shared_url


@pytest.fixture
def driver(shared_url: str, spares: Spares) -> Iterator[Driver]:
    """A driver of an empty database with two agents, a and b."""
    spares.empty()
    yield _with_agents(Driver(shared_url, spares.take))
    spares.give_back()


@pytest.fixture
def fresh(database_url: str) -> Iterator[Driver]:
    """The same on a database of its own."""
    with ExitStack() as stack:

        def connect() -> Connection:
            return stack.enter_context(psycopg.connect(database_url, autocommit=True))

        yield _with_agents(Driver(database_url, connect))


@pytest.fixture
def own_server(pg_bin: Path | None) -> Iterator[OwnServer]:
    """Start a server of the test's own, with fsync on, to crash it or to change its settings."""
    servers = []

    def start(**settings: str) -> EmbeddedServer:
        server = EmbeddedServer(_new_folder(), bindir=pg_bin, settings=settings)
        servers.append(server)
        try:
            server.start()
        except MissingExtra as error:
            pytest.skip(str(error))
        return server

    yield start
    for server in servers:
        server.stop("immediate")
        shutil.rmtree(server.data_dir, ignore_errors=True)


def _with_agents(driver: Driver) -> Driver:
    # Tests fail as many tasks of a type as they like; those about breakers turn them on again.
    driver.rows("update treadle.task_types set breaker = '{\"threshold\": 0}'")
    driver.agent("a")
    driver.agent("b")
    return driver


def _folder(item: pytest.Item) -> str:
    """The folder below tests that a test is in."""
    return item.path.relative_to(item.config.rootpath).parts[1]


@contextmanager
def _server(bindir: Path | None, settings: dict[str, str]) -> Iterator[EmbeddedServer]:
    folder = _new_folder(_in_memory())
    try:
        with EmbeddedServer(folder, bindir=bindir, settings=settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _database(maintenance: Connection, template: str = "template1") -> Iterator[str]:
    name = f"treadle_test_{os.getpid()}_{next(_numbers)}"
    # Without a crash to survive, copying files is the quickest way, and leaves no buffers to drop.
    query = sql.SQL("create database {} template {} strategy file_copy").format(
        sql.Identifier(name), sql.Identifier(template)
    )
    deadline = time.monotonic() + 10
    while True:
        try:
            maintenance.execute(query)
            break
        except psycopg.errors.ObjectInUse:
            # The last connection to the template is still being closed.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    try:
        yield name
    finally:
        maintenance.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@contextmanager
def _without_new_roles(server_url: str) -> Iterator[None]:
    """Remove the roles that a test run created on an external server."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        found = connection.execute("select to_regrole('treadle_owner')").fetchone()
        yield
        if found == (None,):
            # Another run on the same server may still need them.
            with suppress(psycopg.errors.DependentObjectsStillExist):
                connection.execute(f"drop role if exists {ROLES}".encode())


def _new_folder(parent: str | None = None) -> Path:
    # Short, for the socket in it, and not below a folder that only this user may enter.
    return Path(parent or tempfile.gettempdir()) / f"treadle-test-{secrets.token_hex(4)}"


def _in_memory() -> str | None:
    """A file system in memory with enough space: copying a database is ten times faster there."""
    try:
        free = shutil.disk_usage(MEMORY).free
    except OSError:
        return None
    return MEMORY if free > 4 * 2**30 and os.access(MEMORY, os.W_OK) else None
