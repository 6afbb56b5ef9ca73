"""The catalog explains every view: each view and each of its columns has a comment."""

from typing import Any

import psycopg

Conn = psycopg.Connection[tuple[Any, ...]]


def test_every_column_of_a_view_has_a_comment(sync_conn: Conn) -> None:
    query = """
        select relname || '.' || attname
        from pg_class
        inner join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
        where
          relnamespace = 'treadle'::regnamespace and relkind in ('v', 'm')
          and coalesce(col_description(attrelid, attnum), '') !~ '[.]$'
        order by 1
    """

    assert [row[0] for row in sync_conn.execute(query)] == []


def test_every_view_has_a_comment(sync_conn: Conn) -> None:
    query = """
        select relname
        from pg_class
        where
          relnamespace = 'treadle'::regnamespace and relkind in ('v', 'm')
          and coalesce(obj_description(oid, 'pg_class'), '') !~ '[.]$'
        order by 1
    """

    assert [row[0] for row in sync_conn.execute(query)] == []
