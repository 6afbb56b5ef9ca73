"""Functions, views and triggers are text: what the files say now is what the database has."""

from pathlib import Path

import psycopg
import pytest

from tests.schema import tools
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


def test_a_view_whose_file_is_gone_goes_too(database_url: str, edited_sql: Path) -> None:
    write_view(edited_sql, "brief", "select 1 as a")
    migrate(database_url)
    (edited_sql / "views" / "brief.sql").unlink()

    migrate(database_url)

    assert columns(database_url, "brief") == []
    assert tools.described(database_url) == schema.snapshot()


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


def test_a_view_of_somebody_else_in_our_schema_is_kept(database_url: str, edited_sql: Path) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("create view treadle.site_report as select 1 as a")
    write_view(edited_sql, "ours", "select 1 as a")

    migrate(database_url)

    assert columns(database_url, "site_report") == ["a"]


def test_a_right_that_a_file_no_longer_gives_is_taken_back(
    database_url: str, edited_sql: Path
) -> None:
    file = edited_sql / "functions" / "core" / "refuse.sql"
    text = file.read_text()
    right = "execute on function treadle.refuse(text, jsonb, text, text) to treadle_observer"
    file.write_text(f"{text}\ngrant {right};\n")
    migrate(database_url)
    assert tools.described(database_url) != schema.snapshot()
    file.write_text(text)

    migrate(database_url)

    assert tools.described(database_url) == schema.snapshot()


def test_a_migration_brings_the_code_back_that_it_dropped(
    database_url: str, edited_sql: Path
) -> None:
    number = tools.LATEST + 1
    (edited_sql / "migrations" / f"{number:04d}_again.sql").write_text(
        "drop function treadle.schema_version();\n"
    )

    result = migrate(database_url)

    assert (result.applied, result.code_applied) == ([f"{number:04d}_again"], True)
    assert tools.described(database_url) == schema.snapshot()


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
        place = f"migrations/{tools.LATEST + 1:04d}_broken.sql"
    else:
        place = "views/broken.sql"
    (edited_sql / place).write_text(broken)
    before = tools.content(database_url)

    with pytest.raises(SchemaError, match=rf"{place} line 4: .*nothing"):
        migrate(database_url)

    assert tools.content(database_url) == before


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
