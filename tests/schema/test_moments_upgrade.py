"""Times that no client can read are where they can be read after the upgrade."""

from datetime import UTC, datetime

import psycopg
from psycopg.types.json import Jsonb

from tests.schema.test_upgrade import install_old
from treadle.db.install import migrate as schema


def test_times_beyond_the_calendar_are_moved_into_it(empty_database_url: str) -> None:
    install_old(empty_database_url, 4)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        for options in (
            {"run_at": "0001-01-01T00:00:00+14:00"},
            {"deadline_at": "9999-12-31T23:59:59-14:00"},
            {"run_at": "2027-01-31T12:00Z", "deadline_at": "2027-02-01T12:00Z"},
        ):
            conn.execute(
                "select treadle.enqueue_task('default', 'code', p_options => %s)", [Jsonb(options)]
            )

        schema.migrate(empty_database_url)

        found = conn.execute(
            "select run_at at time zone 'utc', deadline_at at time zone 'utc'"
            " from treadle.tasks order by id"
        ).fetchall()
    utc = [tuple(at and at.replace(tzinfo=UTC) for at in row) for row in found]
    assert utc == [
        (datetime(1970, 1, 1, tzinfo=UTC), None),
        (None, datetime(9999, 12, 31, tzinfo=UTC)),
        (datetime(2027, 1, 31, 12, tzinfo=UTC), datetime(2027, 2, 1, 12, tzinfo=UTC)),
    ]
