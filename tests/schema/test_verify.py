"""`verify` finds manual changes, and accepts the grants of a site."""

import psycopg
import pytest

from treadle.db.install import schema
from treadle.db.install.migrate import verify

CHANGES = [
    ("drop index treadle.tasks_ready_idx", "table treadle.tasks lacks: CREATE INDEX tasks_re"),
    ("create index mine on treadle.tasks (type)", "table treadle.tasks also has: CREATE INDEX"),
    ("alter table treadle.tasks add extra text", "table treadle.tasks also has: extra text,"),
    ("alter table treadle.tasks alter priority drop not null", "lacks: priority smallint not"),
    ("alter table treadle.tasks reset (fillfactor)", "table treadle.tasks lacks: ) with (auto"),
    (
        "alter table treadle.tasks disable trigger all",
        "table treadle.tasks also has: CREATE TR",
    ),
    (
        "alter table treadle.tasks owner to current_user",
        "also has: alter table treadle.tasks o",
    ),
    ("comment on table treadle.tasks is null", "table treadle.tasks lacks: comment on table"),
    ("create table treadle.mine (a int)", "table treadle.mine is unexpected"),
    ("drop function treadle.schema_version()", "function treadle.schema_version("),
    (
        "alter function treadle.clock() immutable",
        "treadle.clock() lacks: language sql volatile",
    ),
    ("alter function treadle.clock() set work_mem = '1MB'", "also has: set work_mem=1MB"),
    (
        "grant execute on function treadle.clock() to public",
        "also has: grant execute to public",
    ),
    ("grant select on treadle.tasks to treadle_worker", "also has: grant select on table tre"),
    ("grant select (id) on treadle.tasks to public", "also has: grant select (id) on table"),
    ("revoke usage on schema treadle from treadle_worker", "schema treadle lacks: grant usage"),
]


def test_every_kind_of_change_shows_in_the_description(
    sync_conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    missed = []
    for change, problem in CHANGES:
        with sync_conn.transaction(force_rollback=True):
            sync_conn.execute(change.encode())
            found = schema.differences(schema.snapshot(), schema.describe(sync_conn))
        if not any(problem in line for line in found):
            missed.append((change, found))

    assert missed == []
    assert schema.differences(schema.snapshot(), schema.describe(sync_conn)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("drop index treadle.tasks_ready_idx", "table treadle.tasks lacks: CREATE INDEX"),
        ("update treadle.code set checksum = 'x'", "the functions and views differ from those"),
        (
            "delete from treadle.migrations where version = 2",
            "0002_queues_and_agents is not applied",
        ),
    ],
)
def test_a_change_by_hand_is_found(
    change: str, problem: str, database_url: str, sync_conn: psycopg.Connection[tuple[object, ...]]
) -> None:
    assert verify(database_url) == []

    sync_conn.execute(change.encode())

    found = verify(database_url)
    assert len(found) == 1
    assert problem in found[0]


def test_a_grant_to_a_role_of_the_site_is_accepted(
    database_url: str, sync_conn: psycopg.Connection[tuple[object, ...]]
) -> None:
    role = f"{sync_conn.info.dbname}_reader"
    sync_conn.execute(f"create role {role}".encode())
    try:
        sync_conn.execute(f"grant select on treadle.tasks to {role} with grant option".encode())
        sync_conn.execute(f"grant execute on function treadle.clock() to {role}".encode())

        assert verify(database_url) == []
    finally:
        sync_conn.execute(f"drop owned by {role}".encode())
        sync_conn.execute(f"drop role {role}".encode())
