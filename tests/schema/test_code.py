"""Functions, views and triggers in the database match their files."""

import re
from pathlib import Path

import psycopg
import pytest

from tests.drivers import runners
from treadle.db.install import files, schema
from treadle.db.install.migrate import migrate, status
from treadle.errors import SchemaError

VIEW = """
create view treadle.{name} as
{query};
grant select on treadle.{name} to treadle_observer;
"""


def write_view(folder: Path, name: str, query: str) -> None:
    (folder / "views" / f"{name}.sql").write_text(VIEW.format(name=name, query=query))


def columns(url: str, view: str) -> list[str]:
    """The columns of a view; none when it does not exist."""
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            """
            select column_name from information_schema.columns
            where table_schema = 'treadle' and table_name = %s
            order by ordinal_position
            """,
            (view,),
        ).fetchall()
    return [row[0] for row in rows]


def rights(url: str, function: str) -> list[str]:
    """The grants on a function, as the description of the schema has them."""
    paragraphs = runners.described(url).split("\n\n")
    block = next(part for part in paragraphs if part.startswith(f"-- function treadle.{function}("))
    return [line.strip() for line in block.splitlines() if line.startswith("  grant ")]


def test_views_change_their_columns_and_build_on_each_other(
    database_url: str, edited_sql: Path
) -> None:
    write_view(edited_sql, "a_top", "select zz_base.b from treadle.zz_base")
    write_view(edited_sql, "zz_base", "select 1 as a, 2 as b")
    migrate(database_url)
    assert columns(database_url, "a_top") == ["b"]

    write_view(edited_sql, "a_top", "select zz_base.c, zz_base.b from treadle.zz_base")
    write_view(edited_sql, "zz_base", "select 'x' as b, 3 as c")
    migrate(database_url)

    assert columns(database_url, "a_top") == ["c", "b"]


def test_a_view_without_a_file_is_dropped(database_url: str, edited_sql: Path) -> None:
    write_view(edited_sql, "brief", "select 1 as a")
    migrate(database_url)
    (edited_sql / "views" / "brief.sql").unlink()

    migrate(database_url)

    assert columns(database_url, "brief") == []
    assert runners.described(database_url) == schema.snapshot()


def test_a_view_that_others_built_on_ours_stops_the_run_and_is_named(
    database_url: str, edited_sql: Path
) -> None:
    write_view(edited_sql, "ours", "select 1 as a")
    migrate(database_url)
    with psycopg.connect(database_url) as conn:
        conn.execute("create view public.theirs as select a from treadle.ours")
    write_view(edited_sql, "ours", "select 1 as a, 2 as b")

    with pytest.raises(SchemaError, match=r"theirs") as raised:
        migrate(database_url)

    assert "Drop" in (raised.value.hint or "")
    assert columns(database_url, "ours") == ["a"]
    assert not status(database_url).code_current


OF_SOMEBODY_ELSE = {
    "view treadle.site_report": "create view treadle.site_report as select 1 as a",
    "table treadle.notes": "create table treadle.notes (a integer)",
    "function treadle.helper(integer)": "create function treadle.helper(a integer)"
    " returns integer language sql as 'select 1'",
    "function treadle.clock()": "alter function treadle.clock() owner to current_user",
    "table treadle.tasks": "alter table treadle.tasks owner to current_user",
}


@pytest.mark.parametrize("name", OF_SOMEBODY_ELSE)
def test_an_object_of_somebody_else_in_our_schema_stops_the_run_and_is_named(
    name: str, database_url: str, edited_sql: Path
) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(OF_SOMEBODY_ELSE[name].encode())
    write_view(edited_sql, "ours", "select 1 as a")
    before = runners.content(database_url)

    with pytest.raises(SchemaError, match=re.escape(name)) as raised:
        migrate(database_url)

    assert "owner to treadle_owner" in (raised.value.hint or "")
    assert runners.content(database_url) == before


def test_many_objects_of_somebody_else_are_counted(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        for number in range(7):
            conn.execute(f"create table treadle.notes_{number} ()".encode())

    with pytest.raises(SchemaError, match=r"notes_4 .* and 2 more") as raised:
        migrate(database_url)

    assert len(raised.value.detail["objects"]) == 7  # type: ignore[arg-type]


@pytest.mark.parametrize("role", ["public", "treadle_observer"])
@pytest.mark.parametrize(
    "function",
    [
        # In a file with other functions, in one that is named for it, and in no file.
        "raise_error(text, jsonb, text, text)",
        "create_token(text, jsonb, text)",
        "uuidv7()",
    ],
)
def test_a_right_that_no_file_gives_is_taken_back(
    function: str, role: str, database_url: str, edited_sql: Path
) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("set role treadle_owner")
        conn.execute(f"grant execute on function treadle.{function} to {role}".encode())
    assert runners.described(database_url) != schema.snapshot()
    clock = edited_sql / "functions" / "core" / "clock.sql"
    clock.write_text(f"{clock.read_text()}\n-- Edited.\n")

    migrate(database_url)

    assert runners.described(database_url) == schema.snapshot()


def test_a_comment_that_no_file_gives_is_removed(database_url: str, edited_sql: Path) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("comment on function treadle.mask_text(text) is 'Old.'")
    assert runners.described(database_url) != schema.snapshot()
    clock = edited_sql / "functions" / "core" / "clock.sql"
    clock.write_text(f"{clock.read_text()}\n-- Edited.\n")

    migrate(database_url)

    assert runners.described(database_url) == schema.snapshot()


def test_a_function_without_a_file_keeps_no_right(database_url: str, edited_sql: Path) -> None:
    file = edited_sql / "functions" / "core" / "brief.sql"
    file.write_text(
        "create function treadle.brief() returns integer language sql as 'select 1';\n"
        "grant execute on function treadle.brief() to treadle_observer;\n"
    )
    migrate(database_url)
    assert rights(database_url, "brief") == ["grant execute to treadle_observer"]
    file.unlink()

    migrate(database_url)

    assert rights(database_url, "brief") == []


def test_a_migration_brings_the_code_back_that_it_dropped(
    database_url: str, edited_sql: Path
) -> None:
    number = runners.LATEST + 1
    (edited_sql / "migrations" / f"{number:04d}_again.sql").write_text(
        "drop function treadle.schema_version();\n"
    )

    result = migrate(database_url)

    assert (result.applied, result.code_applied) == ([f"{number:04d}_again"], True)
    assert runners.described(database_url) == schema.snapshot()


def test_functions_name_each_other_in_any_order(database_url: str, edited_sql: Path) -> None:
    for name, body in [("aa_first", "select treadle.zz_last()"), ("zz_last", "select 7")]:
        (edited_sql / "functions" / f"{name}.sql").write_text(
            f"create function treadle.{name}() returns integer language sql as '{body}';"
        )

    migrate(database_url)

    with psycopg.connect(database_url) as conn:
        assert conn.execute("select treadle.aa_first()").fetchone() == (7,)


@pytest.mark.parametrize("kind", ["migration", "view"])
def test_an_error_in_a_file_names_the_file_and_line_and_changes_nothing(
    kind: str, database_url: str, edited_sql: Path
) -> None:
    broken = "-- A comment.\n\ncreate view treadle.broken as\nselect nothing.here;\n"
    if kind == "migration":
        place = f"migrations/{runners.LATEST + 1:04d}_broken.sql"
    else:
        place = "views/broken.sql"
    (edited_sql / place).write_text(broken)
    before = runners.content(database_url)

    with pytest.raises(SchemaError, match=rf"{place} line 4: .*nothing"):
        migrate(database_url)

    assert runners.content(database_url) == before


def test_every_function_body_passes_the_check_of_postgresql(
    sync_conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    """The runner turns the check off, since functions name each other in any order."""
    functions = [file for file in files.code_files() if file[0].startswith("functions/")]
    assert functions

    with sync_conn.transaction(force_rollback=True):
        sync_conn.execute("set local check_function_bodies = on")
        for _, text in functions:
            sync_conn.execute(text.encode())
