"""Which database a command uses, and its errors when the database is unusable."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_SERVER, Cli, Conn
from treadle.db.embedded import running_server

LIST = ("tasks", "list")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for a server that another account can reach."""
    folder = Path(tempfile.gettempdir()) / f"treadle-test-{secrets.token_hex(4)}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def other(number: int) -> str:
    """A URL whose name is seen in the error of a connection that fails."""
    return f"postgresql://127.0.0.1:1/db{number}"


def test_the_option_wins_over_the_environment_and_that_over_the_file(
    bare: Cli, folder: Path
) -> None:
    assert "no database is configured" in bare(*LIST).err
    (folder / "treadle.toml").write_text(f'database_url = "{other(1)}"')
    assert "database db1 " in bare(*LIST).err
    env = {"DATABASE_URL": other(2)}
    assert "database db2 " in bare(*LIST, env=env).err
    env["TREADLE_DATABASE_URL"] = other(3)
    assert "database db3 " in bare(*LIST, env=env).err
    assert "database db4 " in bare("--database-url", other(4), *LIST, env=env).err
    before_and_after = ("--database-url", other(4), *LIST, "--database-url", other(5))
    assert "database db5 " in bare(*before_and_after, env=env).err


def test_an_empty_variable_is_not_a_database(bare: Cli) -> None:
    wrong = bare(*LIST, env={"TREADLE_DATABASE_URL": ""})

    assert wrong.code == 2
    assert "no database is configured" in wrong.err


@pytest.mark.parametrize("words", ["tasks list", "db status", "queues stuck", "db migrate"])
def test_an_unreachable_server_is_reported_at_once(words: str, bare: Cli) -> None:
    wrong = bare(*words.split(), "--database-url", NO_SERVER)

    assert wrong.code == 6
    assert "cannot connect to database tasks at 127.0.0.1:1" in wrong.err
    assert "hunter2" not in wrong.err + wrong.out


def test_a_url_that_cannot_be_read_is_a_usage_error(bare: Cli) -> None:
    wrong = bare(*LIST, "--database-url", "postgresql//me:hunter2@host")

    assert wrong.code == 2
    assert "hunter2" not in wrong.err


@pytest.mark.parametrize(
    "words", ["tasks list", "tasks enqueue code", "dead-letters list", "agents list"]
)
def test_a_database_without_the_schema_prints_what_to_do(
    words: str, bare: Cli, empty_database_url: str
) -> None:
    wrong = bare(*words.split(), "--database-url", empty_database_url)

    assert wrong.code == 1
    assert "has no treadle schema" in wrong.err
    assert "treadle db migrate" in wrong.err


def test_migrate_shows_its_steps_and_the_rest_works(bare: Cli, empty_database_url: str) -> None:
    where = ("--database-url", empty_database_url)
    assert bare("db", "status", *where, "--json").json["version"] is None

    done = bare("db", "migrate", *where)

    assert done.code == 0
    assert "applying 0001_foundation" in done.err
    assert done.out.startswith("the schema is now at migration")
    assert bare("db", "migrate", *where).out.startswith("nothing to do")
    assert bare(*LIST, *where).code == 0


def test_the_printed_sql_installs_the_same(bare: Cli, empty_database_url: str) -> None:
    script = bare("db", "sql").out
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute(script.encode())

    assert bare(*LIST, "--database-url", empty_database_url).code == 0


def test_a_schema_newer_than_the_code_is_refused(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("insert into treadle.migrations values (9999, 'later', 'x')")

    for words in (["tasks", "list"], ["db", "migrate"], ["reaper"]):
        wrong = cli(*words)
        assert wrong.code == 1
        assert "the schema is at migration 9999" in wrong.err
    states = {row[2] for row in cli("db", "status").rows[1:]}
    assert states == {"applied", "unknown"}


def test_a_schema_of_an_unreleased_version_is_refused(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("update treadle.migrations set name = 'registry' where version = 2")

    wrong = cli("db", "migrate")
    found = cli("db", "status")

    assert wrong.code == 1
    assert "created by an unreleased version" in wrong.err
    assert "Export what you need" in wrong.err
    assert "created by an unreleased version" in found.err
    assert [row[:3] for row in found.rows if row[1] == "registry"] == [["2", "registry", "changed"]]


def test_a_login_without_a_role_prints_which_to_grant(
    bare: Cli, database_url: str, sync_conn: Conn
) -> None:
    name = f"stranger_{os.getpid()}"
    sync_conn.execute(f"create role {name} login".encode())
    try:
        url = psycopg.conninfo.make_conninfo(database_url, user=name)
        wrong = bare(*LIST, "--database-url", url)
    finally:
        sync_conn.execute(f"drop role {name}".encode())

    assert wrong.code == 1
    assert "permission denied" in wrong.err
    assert "grant" in wrong.err.lower()


@pytest.mark.requirement("B12")
def test_the_embedded_server_starts_when_asked_for_and_stops_again(place: Path) -> None:
    settings = {"TREADLE_EMBEDDED": "1", "TREADLE_DATA_DIR": str(place)}

    made = commands.treadle("tasks", "enqueue", "code", **settings)
    listed = commands.treadle("tasks", "list", "-q", **settings)

    assert made.code == listed.code == 0
    assert "for development, not production" in made.err
    assert listed.out == made.out
    assert running_server(place) is None


@pytest.mark.requirement("B12")
def test_a_worker_without_a_database_starts_no_server(folder: Path, module: str) -> None:
    place = folder / "pg"

    wrong = commands.treadle("worker", module, TREADLE_DATA_DIR=str(place))

    assert wrong.code == 2
    assert "no database is configured" in wrong.err
    assert not place.exists()
