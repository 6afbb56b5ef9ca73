"""The row of a task stays narrow: its column order needs no padding."""

from typing import Any

import psycopg

ALIGNED = {"d": 8, "i": 4, "s": 2, "c": 1}


def test_fixed_width_columns_of_a_task_come_first_and_widest_first(
    sync_conn: psycopg.Connection[tuple[Any, ...]],
) -> None:
    columns = sync_conn.execute(
        """
        select attname, attlen, attalign
        from pg_attribute
        where attrelid = 'treadle.tasks'::regclass and attnum > 0 and not attisdropped
        order by attnum
        """
    ).fetchall()
    # 16 bytes without an alignment of their own: a uuid leaves the next column where it was.
    sizes = [
        (name, length, 8 if length == 16 else ALIGNED[align]) for name, length, align in columns
    ]
    fixed = [size for size in sizes if size[1] > 0]

    assert sizes[: len(fixed)] == fixed
    assert fixed == sorted(fixed, key=lambda size: -size[2])
