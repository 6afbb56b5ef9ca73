"""Checks that protect a superuser from replaced code in the schema.

Functions, views and triggers run with the rights of the session that uses them, unless they are
security definers. A member of treadle_owner could replace one and wait for a superuser to call it.
So a superuser first compares them with this release. The checks read only pg_catalog and call
nothing in the schema.
"""

import re
from typing import Any

import psycopg

from treadle.db.install import files, schema
from treadle.errors import Forbidden, SchemaOutdated

Conn = psycopg.Connection[Any]

# Differences that do not change the code that runs.
_HARMLESS = re.compile(r" (lacks|also has): (grant|comment|alter default privileges) ")
_SHOWN = 3
_UUIDV7_CALLS = {
    "uuidv7", "encode", "substring", "int8send", "int4send", "uuid_send", "gen_random_uuid",
    "extract", "clock_timestamp",
}  # fmt: skip


def refuse_replaced_code(conn: Conn) -> None:
    """Raise SchemaOutdated if a superuser would run code that is not of this release."""
    if not is_superuser(conn) or not _has_schema(conn):
        return
    problems = [
        problem
        for problem in schema.differences(schema.snapshot(), schema.describe(conn))
        if not _HARMLESS.search(problem)
    ]
    problems += schema.replaced_views(conn)
    problems += [f"{what} is unexpected" for what in _unknown_code(conn)]
    if not _known_uuidv7(conn):
        problems.append("function treadle.uuidv7() differs from that of its migration")
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise SchemaOutdated(
            "the schema differs from this release, and a superuser must not run replaced"
            f" functions or views: {shown}{more}",
            hint="Connect with a login that has a treadle role and is not a superuser, or install"
            " the code of this release: treadle db migrate",
            part="code",
            differences=len(problems),
        )


def refuse_unknown_code(conn: Conn) -> None:
    """Raise Forbidden if a superuser would run unknown code while it migrates a schema.

    The functions of an older release cannot be compared with their files, but a migration calls
    none of them: only triggers, rules, policies and expressions of the tables run.
    """
    if not is_superuser(conn):
        return
    unknown = _unknown_code(conn)
    if unknown:
        raise Forbidden(
            "the tables have code that treadle did not create and a superuser must not run: "
            + ", ".join(unknown),
            hint="Migrate with a member of treadle_owner that is not a superuser, or drop these"
            " objects.",
        )


def is_superuser(conn: Conn) -> bool:
    """Return whether the session user is a superuser, whatever the current role is."""
    row = conn.execute(
        "select rolsuper from pg_catalog.pg_roles where rolname = session_user"
    ).fetchone()
    return bool(row and row[0])


def _has_schema(conn: Conn) -> bool:
    found = conn.execute("select from pg_catalog.pg_namespace where nspname = 'treadle'")
    return found.fetchone() is not None


def _unknown_code(conn: Conn) -> list[str]:
    """List triggers, rules, policies and expressions of the tables that treadle did not create."""
    triggers = [
        path.removeprefix("triggers/").removesuffix(".sql")
        for path, _ in files.code_files()
        if path.startswith("triggers/")
    ]
    return [str(row[0]) for row in conn.execute(_UNKNOWN.encode(), (triggers,))]


def _known_uuidv7(conn: Conn) -> bool:
    """Return whether uuidv7() calls only known functions; servers print its text differently."""
    row = conn.execute(
        """
        select pg_catalog.pg_get_function_sqlbody(pg_proc.oid)
        from pg_catalog.pg_proc
        inner join pg_catalog.pg_namespace on pg_namespace.oid = pg_proc.pronamespace
        where nspname = 'treadle' and proname = 'uuidv7'
        """
    ).fetchone()
    body = (row[0] if row else None) or "unknown()"
    called = {word.lower() for word in re.findall(r"([\w\"]+)\s*\(", body)}
    qualified = set(re.findall(r"[\w\"]+\.[\w\"]+", body))
    return called - {"select", "return", "from"} <= _UUIDV7_CALLS and qualified <= {"clock.us"}


# Built-in functions have no rows in pg_depend; uuidv7() is the default of several columns.
_UNKNOWN = """
with tables as (
  select pg_class.oid from pg_catalog.pg_class
  where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'treadle')
    and relkind in ('r', 'p')
)

-- These are read first: if they were views, reading them would run their code.
select pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, pg_class.oid, 0)
from pg_catalog.pg_class
where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'treadle')
  and relname in ('migrations', 'code') and relkind <> 'r'
union all
select pg_catalog.pg_describe_object('pg_catalog.pg_trigger'::regclass, pg_trigger.oid, 0)
from pg_catalog.pg_trigger
inner join tables on tables.oid = tgrelid
where not tgisinternal and tgname <> all (%s)
union all
select pg_catalog.pg_describe_object('pg_catalog.pg_rewrite'::regclass, pg_rewrite.oid, 0)
from pg_catalog.pg_rewrite
inner join tables on tables.oid = ev_class
union all
select pg_catalog.pg_describe_object('pg_catalog.pg_policy'::regclass, pg_policy.oid, 0)
from pg_catalog.pg_policy
inner join tables on tables.oid = polrelid
union all
select distinct
  pg_catalog.pg_describe_object(classid, objid, objsubid) || ' calling '
  || refobjid::regprocedure::text
from pg_catalog.pg_depend
left join pg_catalog.pg_attrdef on classid = 'pg_catalog.pg_attrdef'::regclass
  and pg_attrdef.oid = objid
left join pg_catalog.pg_constraint on classid = 'pg_catalog.pg_constraint'::regclass
  and pg_constraint.oid = objid
left join pg_catalog.pg_index on classid = 'pg_catalog.pg_class'::regclass and indexrelid = objid
inner join tables on tables.oid = coalesce(adrelid, conrelid, indrelid)
where refclassid = 'pg_catalog.pg_proc'::regclass
  and not (pg_attrdef.oid is not null and refobjid::regproc::text = 'treadle.uuidv7')
"""
