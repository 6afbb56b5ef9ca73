"""A migration waits briefly for a lock, retries, and gives up without changes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.drivers import runners
from treadle.db.install import schema
from treadle.db.install.migrate import LOCK, TRIES, migrate, status
from treadle.errors import Unavailable


def test_a_lock_that_stays_taken_is_a_clear_error_and_changes_nothing(
    empty_database_url: str,
) -> None:
    migrate(empty_database_url, to=runners.LATEST - 1)
    before = runners.content(empty_database_url)
    said: list[str] = []

    with (
        runners.holding(empty_database_url, "lock treadle.code in share mode"),
        pytest.raises(Unavailable, match="timed out waiting for a lock") as raised,
    ):
        migrate(empty_database_url, lock_timeout_s=0.02, on_step=said.append)

    assert "pg_locks" in (raised.value.hint or "")
    assert sum("trying again" in step for step in said) == TRIES - 1
    assert runners.content(empty_database_url) == before


def test_a_lock_that_comes_free_is_only_a_delay(empty_database_url: str) -> None:
    migrate(empty_database_url, to=runners.LATEST - 1)

    with runners.holding(empty_database_url, "lock treadle.code in share mode") as blocker:

        def release(step: str) -> None:
            if "trying again" in step:
                blocker.rollback()

        result = migrate(empty_database_url, lock_timeout_s=0.02, on_step=release)

    assert result.version == runners.LATEST
    assert runners.described(empty_database_url) == schema.snapshot()


def test_an_uncommitted_writer_leaves_the_old_code_in_place(
    database_url: str, edited_sql: Path
) -> None:
    version = edited_sql / "functions" / "core" / "schema_version.sql"
    version.write_text(version.read_text().replace("The newest", "The very newest"))

    with runners.holding(database_url, "lock treadle.tasks in row exclusive mode") as writer:
        with pytest.raises(Unavailable, match="triggers/"):
            migrate(database_url, lock_timeout_s=0.02)
        found = writer.execute(
            "select obj_description('treadle.schema_version()'::regprocedure, 'pg_proc')"
        ).fetchone()

    assert found is not None
    assert found[0].startswith("The newest")
    assert not status(database_url).code_current
    assert migrate(database_url).code_applied


def test_a_deadlock_is_tried_again(empty_database_url: str) -> None:
    migrate(empty_database_url, to=runners.LATEST - 1)
    said: list[str] = []
    with psycopg.connect(empty_database_url) as conn:
        conn.execute(f"alter database {conn.info.dbname} set deadlock_timeout = '500ms'".encode())

    # The runner has the migration lock and wants the table; the blocker the other way round.
    lock = "set local deadlock_timeout = '1h'; lock treadle.code in share mode"
    with ThreadPoolExecutor(1) as pool, runners.holding(empty_database_url, lock) as blocker:
        run = pool.submit(migrate, empty_database_url, lock_timeout_s=1, on_step=said.append)
        runners.await_waiting(empty_database_url, 1)
        blocker.execute(LOCK.encode())
        blocker.rollback()
        result = run.result(timeout=30)

    assert any("trying again" in step for step in said)
    assert result.version == runners.LATEST
