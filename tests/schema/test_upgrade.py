"""A database of an earlier version, with work in it, becomes one of this version."""

import gzip
from pathlib import Path

import psycopg

from treadle.db.install import files
from treadle.db.install import migrate as schema

RELEASES = Path(__file__).parent / "releases"


def install_old(url: str, version: int) -> None:
    """Make the schema as that version had it; its migrations have not changed since."""
    code = gzip.decompress((RELEASES / f"code-{version:04}.sql.gz").read_bytes())
    with psycopg.connect(url) as conn:
        conn.execute("set local search_path = ''")
        conn.execute("set local client_min_messages = warning")
        conn.execute((files.sql_dir() / "roles.sql").read_bytes())
        for migration in schema.migrations()[:version]:
            conn.execute(migration.sql.encode())
            conn.execute(
                "insert into treadle.migrations (version, name, checksum) values (%s, %s, %s)",
                (migration.version, migration.name, migration.checksum),
            )
        conn.execute("set local role treadle_owner")
        conn.execute("set local check_function_bodies = off")
        conn.execute(code)
        conn.execute("insert into treadle.code (checksum) values ('old')")


def test_work_of_version_4_goes_on_after_the_upgrade(empty_database_url: str) -> None:
    install_old(empty_database_url, 4)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute("select treadle.register_agent('a')")
        conn.execute("select treadle.enqueue_task('default', 'code') from generate_series(1, 3)")
        claimed = conn.execute("select id, claim_token from treadle.claim_tasks('a')").fetchone()
        assert claimed is not None

        result = schema.migrate(empty_database_url)

        assert result.applied == [each.label for each in schema.migrations()[4:]]
        done = conn.execute("select treadle.complete_task(%s, %s)", claimed).fetchone()
        assert done == ("completed",)
        [[left]] = conn.execute("select count(*) from treadle.claim_tasks('a', p_limit => 9)")
        assert left == 2
