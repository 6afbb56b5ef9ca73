"""The SQL files: where they are, in which order they go, and their checksums.

Nothing here talks to a database. Migrations are history and applied once each; the code
(functions, views, triggers) is text and applied as a whole whenever it changed.
"""

import hashlib
import re
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from treadle.errors import ConfigurationError

ROLES = ("treadle_producer", "treadle_worker", "treadle_observer", "treadle_operator")

_MIGRATION = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_NAMED = re.compile(r"\btreadle\.([a-z_][a-z0-9_]*)")
# Comments, strings and bodies in dollar quotes: nothing in them has to exist before the rest.
_UNPARSED = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_FUNCTION = re.compile(
    r"^create (?:or replace )?(?:function|procedure) treadle\.(\w+)", re.MULTILINE
)
# A statement ends at its semicolon, not at one in a comment, a string or a body.
_STATEMENT = re.compile(
    r"""(?> [^;'$/-]+ | --[^\n]* | /\*.*?\*/ | '(?:[^']|'')*' | \$(\w*)\$.*?\$\1\$ | [^;] )*+ ;""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Migration:
    """One file of `sql/migrations`."""

    version: int
    name: str
    sql: str
    checksum: str

    @property
    def label(self) -> str:
        """The name of the file without its ending."""
        return f"{self.version:04d}_{self.name}"


def sql_dir() -> Path:
    """The folder of the SQL files: inside the installed package, else beside `src`."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "sql", package.parents[1] / "sql"):
        if (folder / "migrations").is_dir():
            return folder
    raise ConfigurationError(
        "the SQL files of treadle are missing", hint="Install the package again."
    )


def roles_sql(folder: Path | None = None) -> str:
    """The text that creates the roles."""
    return _read((folder or sql_dir()) / "roles.sql")


def migrations(folder: Path | None = None) -> list[Migration]:
    """All migrations, in order: 1, 2, 3 ... without a gap."""
    found = []
    for path in sorted(((folder or sql_dir()) / "migrations").glob("*.sql")):
        match = _MIGRATION.fullmatch(path.name)
        if match is None:
            raise ConfigurationError(f"migration {path.name} is not named NNNN_name.sql")
        text = _read(path)
        found.append(Migration(int(match[1]), match[2], text, _sha256(text)))
    versions = [migration.version for migration in found]
    if versions != list(range(1, len(versions) + 1)) or not found:
        raise ConfigurationError(f"migrations must count 1, 2, 3 ... but are {versions}")
    return found


def code_files(folder: Path | None = None) -> list[tuple[str, str]]:
    """Every code file as (path, text), in an order in which they can be applied."""
    root = folder or sql_dir()
    functions = _texts(sorted((root / "functions").rglob("*.sql")))
    views = _texts(sorted((root / "views").glob("*.sql")))
    triggers = _texts(sorted((root / "triggers").glob("*.sql")))
    # A function or view is parsed when it is created, unless its body is in dollar quotes: then
    # what it names must exist.
    ordered = [
        *_by_need(
            functions,
            {name: path for path, text in functions.items() for name in _FUNCTION.findall(text)},
        ),
        *_by_need(views, {path.stem: path for path in views}),
        *triggers.items(),
    ]
    return [(path.relative_to(root).as_posix(), text) for path, text in ordered]


def functions(folder: Path | None = None) -> dict[str, str]:
    """Each function by name: the statement that creates it, from whatever file it stands in."""
    return {
        name: statement
        for path, text in code_files(folder)
        if path.startswith("functions/")
        for name, statement in functions_in(text).items()
    }


def functions_in(text: str) -> dict[str, str]:
    """The functions that a text creates, in its order: name and statement."""
    found = {}
    for statement in _STATEMENT.finditer(text):
        create = _FUNCTION.search(statement[0])
        if create is not None:
            found[create[1]] = statement[0][create.start() :]
    return found


def code_checksum(folder: Path | None = None) -> str:
    """One checksum over the paths and texts of all code files."""
    return _sha256("".join(f"{path}\n{_sha256(text)}\n" for path, text in code_files(folder)))


def _by_need(texts: dict[Path, str], made: dict[str, Path]) -> list[tuple[Path, str]]:
    """Files after those that create what they name; by path where that leaves a choice."""
    sorter: TopologicalSorter[Path] = TopologicalSorter()
    for path, text in texts.items():
        named = set(_NAMED.findall(_UNPARSED.sub("", text)))
        sorter.add(path, *({made[name] for name in named & made.keys()} - {path}))
    order: list[Path] = []
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(path.stem for path in error.args[1])
        raise ConfigurationError(f"SQL files need each other: {circle}") from None
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order.extend(ready)
        sorter.done(*ready)
    return [(path, texts[path]) for path in order]


def _texts(paths: list[Path]) -> dict[Path, str]:
    return {path: _read(path) for path in paths}


def _read(path: Path) -> str:
    """The text of a file with plain newlines, however the checkout stored it."""
    return path.read_bytes().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
