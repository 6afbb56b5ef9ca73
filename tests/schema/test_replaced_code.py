"""A superuser never runs code of treadle_owner that is not the code of this release."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from treadle.db.connection import connect_sync
from treadle.db.install.migrate import migrate, status, verify
from treadle.db.install.trust import refuse_replaced_code
from treadle.errors import Forbidden, SchemaOutdated

# What would run with the rights of the superuser; here it only has to be noticed.
EVIL = "create function treadle.evil() returns boolean language sql as $$ select true $$"
REPLACED = {
    "a function": "create or replace function treadle.schema_version(out version integer,"
    " out code_checksum text) language sql as $$ select 1, treadle.evil()::text $$",
    "a function with a parsed body": "create or replace function treadle.clock()"
    " returns timestamptz language sql volatile parallel safe"
    " return (select pg_catalog.now() where treadle.evil())",
    "uuidv7": "create or replace function treadle.uuidv7() returns uuid language sql volatile"
    " return (select pg_catalog.gen_random_uuid() where"
    " pg_catalog.query_to_xml('select treadle.evil()', true, true, '') is not null)",
    "a default": "alter table treadle.queues alter column paused_at"
    " set default case when treadle.evil() then null::timestamptz end",
    "a constraint": "alter table treadle.queues add constraint evil check (treadle.evil())",
    "a rule": "create rule evil as on insert to treadle.queues do also select treadle.evil()",
    "search_path": "alter function treadle.schema_version() set search_path = ''",
}


def as_owner(url: str, *statements: str) -> None:
    """Do what a member of treadle_owner could do."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("set role treadle_owner")
        for statement in statements:
            conn.execute(statement.encode())


def replace(url: str, what: str) -> None:
    """Replace one object with one that calls a function of the owner's own."""
    as_owner(url, EVIL, REPLACED[what])


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("what", REPLACED)
def test_a_superuser_is_warned_before_it_runs_replaced_code(database_url: str, what: str) -> None:
    replace(database_url, what)

    with (
        connect_sync(database_url) as conn,
        pytest.raises(SchemaOutdated, match="superuser") as raised,
    ):
        refuse_replaced_code(conn)

    assert "treadle db migrate" in (raised.value.hint or "")
    # One is the helper that the replacement calls.
    assert int(str(raised.value.detail["differences"])) >= 2


def test_a_replaced_view_is_noticed_by_its_text_alone(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        row = conn.execute("select pg_get_viewdef('treadle.queue_health'::regclass)").fetchone()
    assert row is not None
    text = str(row[0]).rstrip().rstrip(";")
    as_owner(
        database_url,
        f"create or replace view treadle.queue_health as select * from ({text}) as x"
        " where pg_catalog.query_to_xml('select 1', true, true, '') is not null",
    )

    with (
        connect_sync(database_url) as conn,
        pytest.raises(SchemaOutdated, match="queue_health"),
    ):
        refuse_replaced_code(conn)
    assert verify(database_url) == ["view treadle.queue_health differs from its file"]


def test_the_code_of_this_release_is_not_refused(database_url: str) -> None:
    with connect_sync(database_url) as conn:
        refuse_replaced_code(conn)
        conn.execute("comment on function treadle.schema_version() is 'ours'")
        conn.execute("grant execute on function treadle.schema_version() to pg_monitor")
        refuse_replaced_code(conn)


def test_an_empty_database_has_nothing_to_refuse(empty_database_url: str) -> None:
    with connect_sync(empty_database_url) as conn:
        refuse_replaced_code(conn)


def test_the_check_of_replaced_code_is_only_for_superusers(database_url: str) -> None:
    replace(database_url, "a function")
    with psycopg.connect(database_url, autocommit=True) as conn:
        name = f"{conn.info.dbname}_login"
        conn.execute(f"create role {name} login in role treadle_operator".encode())
    try:
        with connect_sync(make_conninfo(database_url, user=name)) as conn:
            refuse_replaced_code(conn)
    finally:
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute(f"drop role {name}".encode())


UNKNOWN = {
    "a trigger": "create trigger evil before insert on treadle.migrations"
    " for each row execute function treadle.tg_tasks__prepare()",
    "a rule": REPLACED["a rule"],
    "a constraint": REPLACED["a constraint"],
    "a default": REPLACED["a default"],
    "a policy": "create policy evil on treadle.queues using (treadle.evil())",
    "a view for a table": "alter table treadle.code rename to code_before;"
    " create view treadle.code as select * from treadle.code_before where treadle.evil()",
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_superuser_does_not_migrate_over_unknown_code(database_url: str, what: str) -> None:
    as_owner(database_url, EVIL, UNKNOWN[what])

    for act in (migrate, status):
        with pytest.raises(Forbidden, match="a superuser must not run") as raised:
            act(database_url)

    assert "not a superuser" in (raised.value.hint or "")
