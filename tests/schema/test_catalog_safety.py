"""Safety rules for every object of an installation, checked in the catalog."""

from typing import Any

import psycopg
import pytest

from treadle.db.install.files import functions

pytestmark = pytest.mark.requirement("B16")

Conn = psycopg.Connection[tuple[Any, ...]]


def names(conn: Conn, query: str) -> list[str]:
    """The first column of a query; none is what every test here wants."""
    return [str(row[0]) for row in conn.execute(query.encode()).fetchall()]


def test_no_granted_function_that_acts_for_the_owner_takes_a_row(sync_conn: Conn) -> None:
    """A caller could make up a row that no table has; an id is looked up."""
    found = names(
        sync_conn,
        """
        select distinct pg_proc.oid::regprocedure::text
        from pg_proc
        cross join lateral aclexplode(proacl) as granted
        cross join lateral unnest(proargtypes::oid[]) as argument (type)
        inner join pg_type on argument.type = pg_type.oid
        left join pg_type as element on pg_type.typelem = element.oid
        inner join pg_class on pg_class.oid in (pg_type.typrelid, element.typrelid)
        where
          pronamespace = 'treadle'::regnamespace and prosecdef and granted.grantee <> proowner
          and relkind in ('r', 'p', 'v', 'm', 'f')
        """,
    )

    assert found == []


def test_nothing_is_open_to_everybody(sync_conn: Conn) -> None:
    found = names(
        sync_conn,
        """
        select pg_proc.oid::regprocedure::text
        from pg_proc
        cross join lateral aclexplode(coalesce(proacl, acldefault('f', proowner))) as granted
        where pronamespace = 'treadle'::regnamespace and granted.grantee = 0
        union all
        select pg_class.oid::regclass::text
        from pg_class
        cross join lateral aclexplode(relacl) as granted
        where relnamespace = 'treadle'::regnamespace and granted.grantee = 0
        """,
    )

    assert found == []


def test_everything_belongs_to_the_owner(sync_conn: Conn) -> None:
    found = names(
        sync_conn,
        """
        select pg_proc.oid::regprocedure::text from pg_proc
        where
          pronamespace = 'treadle'::regnamespace and proowner <> 'treadle_owner'::regrole
        union all
        select pg_class.oid::regclass::text from pg_class
        where
          relnamespace = 'treadle'::regnamespace and relowner <> 'treadle_owner'::regrole
        union all
        select pg_type.oid::regtype::text from pg_type
        where
          typnamespace = 'treadle'::regnamespace and typowner <> 'treadle_owner'::regrole
        """,
    )

    assert found == []


def test_no_function_builds_statements_from_text(sync_conn: Conn) -> None:
    found = names(
        sync_conn,
        r"""
        select proname from pg_proc
        inner join pg_language on prolang = pg_language.oid
        where
          pronamespace = 'treadle'::regnamespace and lanname = 'plpgsql'
          and regexp_replace(prosrc, '--[^\n]*', '', 'g') ~* '\mexecute\M'
        """,
    )

    assert found == []


def test_functions_that_steer_the_planner_do_without_jit(sync_conn: Conn) -> None:
    found = names(
        sync_conn,
        """
        select proname from pg_proc
        where
          pronamespace = 'treadle'::regnamespace
          and exists (select from unnest(proconfig) as setting where setting like 'enable\\_%')
          and not 'jit=off' = any (proconfig)
        """,
    )

    assert found == []


def test_every_routine_has_a_file(sync_conn: Conn) -> None:
    routines = names(
        sync_conn, "select proname from pg_proc where pronamespace = 'treadle'::regnamespace"
    )

    # A migration makes uuidv7, since tables need it.
    assert set(routines) - functions().keys() == {"uuidv7"}
    assert len(routines) == len(set(routines)), "one function, one signature"
