"""The SQL files are found, ordered and hashed in the same way everywhere."""

from pathlib import Path

import pytest

from treadle.db.install import files
from treadle.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of SQL files."""
    for name in ("migrations", "functions", "views", "triggers"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["0002_b.sql"],
        ["0001_a.sql", "0003_c.sql"],
        ["0001_a.sql", "0001_b.sql"],
        ["1_a.sql"],
        ["0001_A.sql"],
        ["0001-a.sql"],
    ],
)
def test_migrations_with_gaps_repeats_or_wrong_names_are_refused(
    names: list[str], folder: Path
) -> None:
    for name in names:
        (folder / "migrations" / name).write_text("select 1;\n")

    with pytest.raises(ConfigurationError, match="migration"):
        files.migrations(folder)


def test_a_checksum_does_not_depend_on_the_newlines_of_the_checkout(folder: Path) -> None:
    file = folder / "migrations" / "0001_a.sql"
    function = folder / "functions" / "f.sql"
    file.write_bytes(b"select 1;\nselect 2;\n")
    function.write_bytes(b"a\nb\n")
    unix = (files.migrations(folder), files.code_checksum(folder))

    file.write_bytes(b"select 1;\r\nselect 2;\r\n")
    function.write_bytes(b"a\r\nb\r\n")

    assert (files.migrations(folder), files.code_checksum(folder)) == unix


def test_the_code_checksum_follows_every_text_and_name(folder: Path) -> None:
    seen = [files.code_checksum(folder)]
    for name in ("functions/f.sql", "views/v.sql", "triggers/t.sql"):
        (folder / name).write_text("one")
        seen.append(files.code_checksum(folder))
        (folder / name).write_text("two")
        seen.append(files.code_checksum(folder))
        (folder / name).rename(folder / name.replace(".sql", "2.sql"))
        seen.append(files.code_checksum(folder))

    assert len(set(seen)) == len(seen) == 10


def test_functions_come_first_and_triggers_last_and_views_after_what_they_name(
    folder: Path,
) -> None:
    (folder / "functions" / "z").mkdir()
    texts = {
        "functions/z/f.sql": "",
        "triggers/a.sql": "",
        "views/a.sql": "-- Not like treadle.d.\ncreate view treadle.a as select from treadle.c",
        "views/b.sql": "create view treadle.b as select 1",
        "views/c.sql": "create view treadle.c as select from treadle.b, treadle.tasks",
        "views/d.sql": "create view treadle.d as select from treadle.a",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)

    names = [name for name, _ in files.code_files(folder)]

    assert names == [
        "functions/z/f.sql",
        "views/b.sql",
        "views/c.sql",
        "views/a.sql",
        "views/d.sql",
        "triggers/a.sql",
    ]


def test_views_that_need_each_other_are_refused_by_name(folder: Path) -> None:
    (folder / "views" / "a.sql").write_text("create view treadle.a as select from treadle.b")
    (folder / "views" / "b.sql").write_text("create view treadle.b as select from treadle.a")

    with pytest.raises(ConfigurationError, match=r"a -> b|b -> a"):
        files.code_files(folder)


def test_a_function_comes_after_what_its_parsed_body_calls(folder: Path) -> None:
    texts = {
        "a": "create function treadle.a() returns int language sql return treadle.c() + 1;",
        "b": "create function treadle.b() returns int language sql as $$ select treadle.d() $$;",
        "c": "-- treadle.a() calls it.\n"
        "create function treadle.b2() returns int language sql return 1;\n"
        "create function treadle.c() returns int language sql return treadle.b2();\n"
        "comment on function treadle.c() is 'For treadle.a().';",
        "d": "create function treadle.d(p int default treadle.a()) returns int language sql"
        " as $$ select treadle.b() $$;",
    }
    for name, text in texts.items():
        (folder / "functions" / f"{name}.sql").write_text(text)

    names = [name for name, _ in files.code_files(folder)]

    assert names == [f"functions/{name}.sql" for name in "bcad"]


def test_function_files_that_need_each_other_are_refused_by_name(folder: Path) -> None:
    create = "create function treadle.{}() returns int language sql return treadle.{}();"
    (folder / "functions" / "a.sql").write_text(create.format("f", "g"))
    (folder / "functions" / "b.sql").write_text(create.format("g", "f"))

    with pytest.raises(ConfigurationError, match=r"a -> b|b -> a"):
        files.code_files(folder)


def test_each_function_of_a_text_is_its_own_statement() -> None:
    quoted = "create function treadle.a() returns text\nlanguage sql return 'x;''; -- y';"
    commented = "create or replace function treadle.b() returns int -- not; here\nreturn 1 / 2;"
    body = "create or replace function treadle.c() returns int\nas $$\n  select 1; -- it's\n$$;"
    text = f"-- a: it's one;\n\n{quoted}\n\n-- b\n{commented}\n{body}\n\ngrant x to y;\n"

    found = files.functions_in(text)

    assert found == {"a": quoted, "b": commented, "c": body}
