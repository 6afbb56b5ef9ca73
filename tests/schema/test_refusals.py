"""The runner rejects invalid databases with a clear error before it changes anything."""

import socket
from collections.abc import Iterator

import psycopg
import pytest

from tests.drivers import runners
from tests.drivers.databases import OwnServer
from treadle.db.connection import mask_password, refuse_old_server
from treadle.db.install.migrate import code_checksum, migrate, schema_problem, status, verify
from treadle.errors import (
    ConfigurationError,
    InvalidArgument,
    MigrationChanged,
    SchemaError,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    Unavailable,
)


def execute(url: str, statement: str) -> None:
    """Change a database behind the runner's back."""
    with psycopg.connect(url) as conn:
        conn.execute(statement.encode())


def test_an_edited_migration_is_refused_by_name(database_url: str) -> None:
    execute(database_url, "update treadle.migrations set checksum = 'x' where version = 2")
    before = runners.content(database_url)

    with pytest.raises(MigrationChanged, match="0002_"):
        migrate(database_url)

    assert runners.content(database_url) == before
    assert [label[:4] for label in status(database_url).changed] == ["0002"]
    assert any("edited" in problem for problem in verify(database_url))


def test_a_newer_schema_is_refused(database_url: str) -> None:
    execute(database_url, "insert into treadle.migrations values (9999, 'later', 'x')")
    execute(database_url, "delete from treadle.code")
    before = runners.content(database_url)

    with pytest.raises(SchemaTooNew, match="9999") as raised:
        migrate(database_url)

    assert raised.value.hint is not None
    assert runners.content(database_url) == before
    assert status(database_url).unknown == [9999]
    assert any("9999" in problem for problem in verify(database_url))


def test_a_schema_of_an_unreleased_version_is_refused_with_a_way_out(database_url: str) -> None:
    execute(
        database_url,
        """
        update treadle.migrations set checksum = 'x' where version < 9;
        update treadle.migrations set name = 'registry' where version = 2;
        insert into treadle.migrations values (9999, 'token_projects', 'x');
        """,
    )
    before = runners.content(database_url)

    with pytest.raises(MigrationChanged, match=r"unreleased version .* 0002_registry") as raised:
        migrate(database_url)

    assert "Export what you need, drop the schema" in (raised.value.hint or "")
    assert raised.value.detail == {"migrations": ["0002_registry"]}
    assert runners.content(database_url) == before
    assert status(database_url).renamed == ["0002_registry"]
    [problem] = verify(database_url)
    assert problem == str(raised.value)


@pytest.mark.parametrize(
    "foreign",
    [
        "create schema treadle",
        "create schema treadle; create table treadle.migrations (id int)",
        "create schema treadle; create table treadle.tasks (id int)",
    ],
)
def test_a_schema_that_treadle_did_not_make_is_left_alone(
    foreign: str, empty_database_url: str, template: str
) -> None:
    execute(empty_database_url, foreign)
    before = runners.described(empty_database_url)

    with pytest.raises(SchemaError, match="was not created by treadle"):
        migrate(empty_database_url)

    assert runners.described(empty_database_url) == before


@pytest.mark.parametrize("to", [0, -1, 10_000])
def test_a_migration_that_does_not_exist_cannot_be_the_goal(to: int, database_url: str) -> None:
    with pytest.raises(InvalidArgument, match=str(to)):
        migrate(database_url, to=to)


def test_a_server_older_than_15_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="PostgreSQL 14"):
        refuse_old_server(140013)

    refuse_old_server(150000)


@pytest.mark.parametrize(
    ("version", "checksum", "problem"),
    [
        (None, None, SchemaMissing),
        (runners.LATEST + 1, code_checksum(), SchemaTooNew),
        (runners.LATEST - 1, code_checksum(), SchemaOutdated),
        (runners.LATEST, "other", SchemaOutdated),
        (runners.LATEST, None, SchemaOutdated),
    ],
)
def test_a_worker_reports_why_a_schema_does_not_match(
    version: int | None, checksum: str | None, problem: type[SchemaError]
) -> None:
    found = schema_problem(version, checksum)

    assert type(found) is problem
    assert found.hint


def test_a_worker_accepts_the_schema_of_its_code() -> None:
    assert schema_problem(runners.LATEST, code_checksum()) is None


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The URL of a port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        yield f"postgresql://me:hunter2@127.0.0.1:{port}/tasks?connect_timeout=2"


def test_a_server_that_does_not_answer_is_unavailable(silent_server: str) -> None:
    with pytest.raises(Unavailable, match="cannot connect to database tasks at 127") as raised:
        migrate(silent_server)

    assert "hunter2" not in str(raised.value)


def test_a_port_without_a_server_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}.*refused") as raised:
        status(f"postgresql://me:hunter2@127.0.0.1:{port}/tasks")

    assert "hunter2" not in str(raised.value)


def test_a_wrong_password_is_unavailable_and_stays_secret(own_server: OwnServer) -> None:
    server = own_server(fsync="off")
    with psycopg.connect(server.url(), autocommit=True) as conn:
        conn.execute("create role guest login password 'right'")
        found = conn.execute("show hba_file").fetchone()
        assert found is not None
        rules = server.data_dir / "data" / "pg_hba.conf"
        assert str(rules) == found[0]
        rules.write_text("local all guest scram-sha-256\n" + rules.read_text())
        conn.execute("select pg_reload_conf()")
    url = server.url().replace("user=postgres", "user=guest")
    assert status(url + "&password=right").version is None

    with pytest.raises(Unavailable, match="password authentication failed") as raised:
        migrate(url + "&password=hunter2")

    assert "hunter2" not in f"{raised.value} {raised.value.hint} {raised.value.detail}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host/tasks?nonsense=1",
        "postgresql//me:hunter2@host/tasks?user=me",
        "postgresql://me:hunter2@[host/tasks",
        "me:hunter2@host",
        "me:hunter2@host password=x",
    ],
)
def test_a_url_that_cannot_be_read_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="database URL is invalid") as raised:
        migrate(url)

    assert "hunter2" not in str(raised.value)


def test_passwords_are_masked_in_urls_and_in_connection_strings() -> None:
    assert (
        mask_password("at postgresql://me:a:b@c@host/db?x=1")
        == "at postgresql://me:***@host/db?x=1"
    )
    assert mask_password("host=h password='a b\\'c' user=me") == "host=h password=*** user=me"
    assert (
        mask_password("postgresql:///db?password=abc&user=me")
        == "postgresql:///db?password=***&user=me"
    )
    assert mask_password("postgresql://host/db") == "postgresql://host/db"
