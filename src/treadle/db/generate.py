"""Write the files that follow from the SQL files: `python -m treadle.db.generate [--check]`.

Needs a checkout, and an empty database to build in: one on an embedded server of its own, or the
one given. With --check nothing is written and a file that is out of date means exit code 1.
"""

import argparse
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import psycopg
from psycopg.rows import dict_row

from treadle.db.embedded import EmbeddedServer
from treadle.db.install import schema
from treadle.db.install.files import code_files, functions_in, install_file, sql_dir
from treadle.db.install.migrate import migrate
from treadle.db.pool import connect_sync
from treadle.errors import ConfigurationError, TreadleError

BEGIN = "<!-- begin: drawn from treadle.transitions by `make sql` -->"
END = "<!-- end -->"

_HEAD = """\
# SQL reference

Every function and view that people and programs may use, with the roles that may use it. Written
by `make sql` from a database; the words are those that `\\df+` and `\\d+` show in psql.
"""

_FUNCTIONS = """
select
  proname as name,
  pg_get_function_arguments(pg_proc.oid) as arguments,
  pg_get_function_result(pg_proc.oid) as result,
  obj_description(pg_proc.oid, 'pg_proc') as comment,
  array(
    select grantee::regrole::text
    from aclexplode(proacl) where grantee not in (0, proowner)
    order by grantee::regrole::text collate "C"
  ) as roles
from pg_proc
where pronamespace = 'treadle'::regnamespace
"""

_VIEWS = """
select
  relname as name,
  obj_description(pg_class.oid, 'pg_class') as comment,
  array(
    select grantee::regrole::text
    from aclexplode(relacl) where grantee not in (0, relowner) and privilege_type = 'SELECT'
    order by grantee::regrole::text collate "C"
  ) as roles,
  (
    select
      array_agg(
        array[attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)]
        order by attnum
      )
    from pg_attribute where attrelid = pg_class.oid and attnum > 0 and not attisdropped
  ) as columns
from pg_class
where relnamespace = 'treadle'::regnamespace and relkind in ('v', 'm')
order by relname
"""

_TRANSITIONS = """
select from_status, to_status, string_agg(distinct "by" collate "C", ', ' order by "by" collate "C")
from treadle.transitions
group by from_status, to_status
order by from_status collate "C" nulls first, to_status collate "C"
"""


def sql_reference(conn: psycopg.Connection[Any]) -> str:
    """The page docs/reference/sql.md."""
    with conn.transaction():
        conn.execute("set local search_path = ''")
        cursor = conn.cursor(row_factory=dict_row)
        functions = {row["name"]: row for row in cursor.execute(_FUNCTIONS)}
        views = cursor.execute(_VIEWS).fetchall()
    folders: dict[str, list[dict[str, Any]]] = {}
    for path, text in code_files():
        # What no role may call is not part of the interface.
        found = [functions[name] for name in functions_in(text) if functions[name]["roles"]]
        if found and path.startswith("functions/"):
            folders.setdefault(PurePath(path).parts[1], []).extend(found)
    parts = [_HEAD]
    for folder, rows in sorted(folders.items()):
        parts.append(f"\n## {folder.replace('_', ' ').capitalize()}\n")
        parts += [_function(row) for row in sorted(rows, key=lambda row: str(row["name"]))]
    parts.append("\n## Views\n")
    parts += [_view(row) for row in views]
    return "".join(parts)


def state_machine(conn: psycopg.Connection[Any], page: str) -> str:
    """The page with the picture between its marks drawn anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ConfigurationError(f"the page has no place for the picture: {BEGIN} ... {END}")
    rows = conn.execute(_TRANSITIONS).fetchall()
    left = {row[0] for row in rows}
    lines = [f"  {start or '[*]'} --> {to}: {by}" for start, to, by in rows]
    lines += [f"  {to} --> [*]" for to in sorted({row[1] for row in rows} - left)]
    picture = "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])
    return f"{before}{BEGIN}\n{picture}\n{END}{after}"


def has_transitions(conn: psycopg.Connection[Any]) -> bool:
    """Whether the database says which transitions are allowed."""
    found = conn.execute("select to_regclass('treadle.transitions') is not null").fetchone()
    return found == (True,)


def _function(row: dict[str, Any]) -> str:
    arguments = re.split(r", (?=(?:OUT |INOUT |VARIADIC )?p_|OUT )", _plain(row["arguments"]))
    signature = f"treadle.{row['name']}({', '.join(arguments)})"
    if len(signature) > 80:
        signature = f"treadle.{row['name']}(\n  " + ",\n  ".join(arguments) + "\n)"
    result = _plain(row["result"])
    if result.startswith("TABLE("):
        columns = result.removeprefix("TABLE(").removesuffix(")").split(", ")
        result = "table (\n  " + ",\n  ".join(columns) + "\n)"
    return (
        f"\n### {row['name']}\n\n{row['comment']}\n\n```sql\n{signature}\n"
        f"returns {result}\n```\n\nFor: {_roles(row['roles'])}.\n"
    )


def _view(row: dict[str, Any]) -> str:
    lines = [
        f"| `{name}` | {_plain(kind)} | {words or ''} |" for name, kind, words in row["columns"]
    ]
    table = "\n".join(["| column | type | meaning |", "|---|---|---|", *lines])
    roles = f"\nFor: {_roles(row['roles'])}.\n" if row["roles"] else ""
    return f"\n### {row['name']}\n\n{row['comment']}\n\n{table}\n{roles}"


def _roles(names: list[str]) -> str:
    return ", ".join(name.removeprefix("treadle_") for name in names)


def _plain(text: str) -> str:
    """Types and defaults as people write them."""
    text = text.replace("timestamp with time zone", "timestamptz").replace("SETOF ", "setof ")
    text = re.sub(r"('|NULL)::[a-z]+( [a-z]+)*(\[\])?", r"\1", text)
    return text.replace(" DEFAULT NULL", " default null").replace(" DEFAULT ", " default ")


def generated(url: str) -> dict[Path, str]:
    """Every generated file with the text that it should have; builds the schema in `url`."""
    root = sql_dir().parent
    if not (root / "pyproject.toml").is_file():
        raise ConfigurationError("files are generated in a checkout, not in an installed package")
    migrate(url)
    texts = {root / "sql" / "install.sql": install_file()}
    with connect_sync(url) as conn:
        texts[root / "sql" / "schema.snapshot.sql"] = schema.describe(conn)
        texts[root / "docs" / "reference" / "sql.md"] = sql_reference(conn)
        machine = root / "docs" / "reference" / "state-machine.md"
        if machine.is_file() and has_transitions(conn):
            texts[machine] = state_machine(conn, machine.read_text(encoding="utf-8"))
    return texts


def outdated(texts: dict[Path, str]) -> list[Path]:
    """The files that do not have that text."""
    return [
        path
        for path, text in texts.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, or check."""
    parser = argparse.ArgumentParser(prog="python -m treadle.db.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    parser.add_argument("--database-url", help="an empty database to build in")
    options = parser.parse_args(arguments)
    try:
        with _scratch(options.database_url) as url:
            texts = generated(url)
    except TreadleError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    late = outdated(texts)
    for path in late:
        name = path.relative_to(sql_dir().parent).as_posix()
        sys.stdout.write(f"{'out of date' if options.check else 'written'}: {name}\n")
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8", newline="\n")
    return 1 if options.check and late else 0


@contextmanager
def _scratch(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    folder = Path(tempfile.gettempdir()) / f"treadle-generate-{secrets.token_hex(4)}"
    try:
        with EmbeddedServer(folder, settings={"fsync": "off"}) as server:
            yield server.url()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
