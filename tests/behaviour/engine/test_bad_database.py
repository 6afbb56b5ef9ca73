"""An application on an unsuitable database fails at once and changes nothing."""

import psycopg
import pytest

from treadle import Treadle
from treadle.errors import SchemaMissing, SchemaOutdated, SchemaTooNew, Unavailable
from treadle.settings import load_settings


async def test_a_database_without_the_schema_is_refused(empty_database_url: str) -> None:
    with pytest.raises(SchemaMissing) as raised:
        await Treadle(empty_database_url).enqueue("code")

    assert "treadle db migrate" in (raised.value.hint or "")


async def test_an_enqueue_on_a_connection_to_a_database_without_the_schema_is_refused(
    empty_database_url: str,
) -> None:
    with psycopg.connect(empty_database_url) as conn, pytest.raises(SchemaMissing):
        Treadle(empty_database_url).enqueue("code", conn=conn)


async def test_a_schema_newer_than_the_code_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("insert into treadle.migrations values (9999, 'future', 'x')")

        with pytest.raises(SchemaTooNew, match="9999"):
            await Treadle(database_url).enqueue("code")

        assert conn.execute("select count(*) from treadle.tasks").fetchone() == (0,)


async def test_a_schema_older_than_the_code_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "delete from treadle.migrations"
            " where version = (select max(version) from treadle.migrations)"
        )

    with pytest.raises(SchemaOutdated) as raised:
        await Treadle(database_url).enqueue("code")

    assert "treadle db migrate" in (raised.value.hint or "")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@127.0.0.1:1/x",
        "postgresql:///x?host=/nonexistent",
        "postgresql://user:secret@host.invalid/x",
    ],
)
async def test_a_url_that_does_not_answer_is_unavailable_within_the_time_limit(url: str) -> None:
    settings = load_settings(database_url=url, connect_timeout_s=1.0)

    with pytest.raises(Unavailable) as raised:
        await Treadle(url, settings=settings).enqueue("code")

    assert "secret" not in f"{raised.value} {raised.value.hint}"
