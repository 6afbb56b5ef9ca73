"""What a caller creates in its own pg_temp never runs with the rights of the owner.

Each login creates objects that shadow names which our functions use, then calls every function
and reads every view that its role may use. The objects report the user that they run as.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

ROLES = ("treadle_producer", "treadle_worker", "treadle_observer", "treadle_operator")

# Reports a user other than the one that logged in. A warning arrives even from a call that fails.
SPY = """
create function pg_temp.spy() returns boolean language plpgsql set search_path = pg_catalog as $$
begin
  if current_user <> session_user then
    raise warning 'spy: ran as %', current_user;
  end if;
  return true;
end
$$
"""


def domain(name: str, base: str | None = None) -> str:
    """A domain that hides a type of pg_catalog."""
    return f'create domain pg_temp."{name}" as pg_catalog.{base or name} check (pg_temp.spy())'


def function(signature: str, result: str) -> str:
    """A function that hides one of pg_catalog."""
    return (
        f"create function pg_temp.{signature} returns pg_catalog.{result} language sql"
        f" as $$ select null::pg_catalog.{result} where pg_temp.spy() $$"
    )


def relation(name: str) -> str:
    """A view that hides a table."""
    return f'create view pg_temp."{name}" as select pg_temp.spy() as id'


SHADOWS: dict[str, tuple[str, ...]] = {
    "text": (domain("text"),),
    "jsonb": (domain("jsonb"), domain("json")),
    "uuid": (domain("uuid"),),
    "integer": (domain("integer", "int4"), domain("int4"), domain("int8"), domain("float8")),
    "timestamptz": (domain("timestamptz"), domain("interval"), domain("date")),
    "text array": (domain("_text", "text[]"), domain("text")),
    "boolean": (domain("bool"), domain("boolean", "bool"), domain("numeric")),
    "cast": (
        "create type pg_temp.jsonb as (value pg_catalog.text)",
        "create function pg_temp.cast_it(pg_catalog.text) returns pg_temp.jsonb language sql"
        " as $$ select row($1)::pg_temp.jsonb where pg_temp.spy() $$",
        "create cast (pg_catalog.text as pg_temp.jsonb)"
        " with function pg_temp.cast_it(pg_catalog.text) as implicit",
    ),
    "operator": (
        function("same(pg_catalog.text, pg_catalog.text)", "bool"),
        function("same(pg_catalog.uuid, pg_catalog.uuid)", "bool"),
        *(
            f"create operator pg_temp.{sign}"
            f" (leftarg = pg_catalog.{of}, rightarg = pg_catalog.{of}, function = pg_temp.same)"
            for sign in ("=", "<>", "<")
            for of in ("text", "uuid")
        ),
    ),
    "function": (
        function("lower(pg_catalog.text)", "text"),
        function("length(pg_catalog.text)", "int4"),
        function("clock_timestamp()", "timestamptz"),
        function("clock()", "timestamptz"),
        function("uuidv7()", "uuid"),
        function("gen_random_uuid()", "uuid"),
        function("current_setting(pg_catalog.text)", "text"),
        function("cardinality(pg_catalog.text[])", "int4"),
    ),
    "table": tuple(
        relation(name) for name in ("tasks", "queues", "lanes", "code", "pg_class", "pg_roles")
    ),
}

# Calls with arguments that get far into a function; the sweep calls the rest with nulls.
LIFE = (
    "select treadle.enqueue_task('default', 'greet', '{\"a\": [1]}')",
    'select treadle.enqueue_tasks(\'[{"type": "greet"}]\')',
    'select treadle.create_dag(\'{"name": "d", "tasks": [{"type": "greet"}]}\')',
    "insert into treadle.tasks (queue, type) values ('default', 'greet')",
    "select treadle.register_agent('spied')",
    "select treadle.claim_tasks('spied', array['default'], p_limit => 1)",
    "select treadle.complete_tasks(array[pg_catalog.gen_random_uuid()],"
    " array[pg_catalog.gen_random_uuid()])",
    "select treadle.why(tasks.id) from treadle.task_details as tasks limit 1",
    "select treadle.define_queue('q')",
)


@pytest.fixture(scope="module")
def url(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """One database for all of the file: nothing that is attempted here may change it."""
    with new_database() as made:
        yield made


@pytest.fixture
def login(url: str) -> Iterator[Callable[[str], str]]:
    """Create a login with one role; returns the URL to connect with."""
    made: list[str] = []
    with psycopg.connect(url, autocommit=True) as conn:

        def create(role: str) -> str:
            name = f"{conn.info.dbname}_{role}"
            conn.execute(f'create role "{name}" login in role {role}'.encode())
            made.append(name)
            return make_conninfo(url, user=name)

        yield create
        for name in made:
            conn.execute(f'drop owned by "{name}"'.encode())
            conn.execute(f'drop role "{name}"'.encode())


def sweep(conn: psycopg.Connection[Any]) -> list[str]:
    """A call of each function, and a read of each relation, that the login may use."""
    found = conn.execute(
        """
        select
          pg_catalog.format(
            'select treadle.%I(%s)', proname,
            (
              select pg_catalog.string_agg(
                pg_catalog.format('null::%s', pg_catalog.format_type(arg, null)), ', ' order by n
              )
              from pg_catalog.unnest(proargtypes) with ordinality as args (arg, n)
            )
          )
        from pg_catalog.pg_proc
        where
          pronamespace = 'treadle'::pg_catalog.regnamespace
          and prorettype <> 'trigger'::pg_catalog.regtype
          and pg_catalog.has_function_privilege(oid, 'execute')
        union all
        select pg_catalog.format('select * from treadle.%I limit 5', relname)
        from pg_catalog.pg_class
        where
          relnamespace = 'treadle'::pg_catalog.regnamespace and relkind in ('r', 'v')
          and pg_catalog.has_table_privilege(oid, 'select')
        """
    ).fetchall()
    return [row[0] for row in found]


def users_seen(url: str, shadows: tuple[str, ...], calls: tuple[str, ...] = ()) -> set[str]:
    """The users, other than the login, that the shadowing objects ran as."""
    seen: set[str] = set()
    with psycopg.connect(url, autocommit=True) as conn:
        # Before the shadows exist: formatting type names depends on what hides what.
        statements = calls or (*LIFE, *sweep(conn))
        conn.add_notice_handler(
            lambda diag: (
                seen.add(said.removeprefix("spy: ran as "))
                if (said := diag.message_primary or "").startswith("spy: ")
                else None
            )
        )
        conn.execute("set statement_timeout = '20s'")
        for shadow in (SPY, *shadows):
            conn.execute(shadow.encode())
        for statement in statements:
            try:
                conn.execute(statement.encode(), prepare=False)
            except psycopg.errors.QueryCanceled:
                raise
            except psycopg.Error:
                continue
        # The server drops them only after the client has gone: the login is dropped before that.
        conn.execute("discard temp")
    return seen


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("shadows", SHADOWS.values(), ids=SHADOWS.keys())
def test_a_shadowing_object_never_runs_as_the_owner(
    url: str, login: Callable[[str], str], role: str, shadows: tuple[str, ...]
) -> None:
    assert users_seen(login(role), shadows) == set()


def test_an_empty_search_path_would_be_noticed(url: str, login: Callable[[str], str]) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            """
            create function public.with_empty_path(a pg_catalog.int4) returns pg_catalog.text
            language plpgsql security definer set search_path = ''
            as $$ declare v text := a; begin return v; end $$
            """
        )
        conn.execute("alter function public.with_empty_path owner to treadle_owner")
    try:
        seen = users_seen(
            login("treadle_producer"), SHADOWS["text"], ("select public.with_empty_path(1)",)
        )
    finally:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("drop function public.with_empty_path")

    assert seen == {"treadle_owner"}
