"""Write the files that follow from the SQL files: `python -m treadle.db.generate [--check]`.

Needs a checkout, and an empty database to build in: one on an embedded server of its own, or the
one given. With --check nothing is written and a file that is out of date means exit code 1.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from treadle.db import reference
from treadle.db.embedded import EmbeddedServer
from treadle.db.install import schema
from treadle.db.install.files import install_file, sql_dir
from treadle.db.install.migrate import migrate
from treadle.db.pool import connect_sync
from treadle.errors import ConfigurationError, TreadleError


def generated(url: str) -> dict[Path, str]:
    """Every generated file with the text that it should have; builds the schema in `url`."""
    root = sql_dir().parent
    if not (root / "pyproject.toml").is_file():
        raise ConfigurationError("files are generated in a checkout, not in an installed package")
    migrate(url)
    texts = {root / "sql" / "install.sql": install_file()}
    with connect_sync(url) as conn:
        texts[root / "sql" / "schema.snapshot.sql"] = schema.describe(conn)
        texts[root / "docs" / "reference" / "sql.md"] = reference.sql_reference(conn)
        machine = root / "docs" / "reference" / "state-machine.md"
        if machine.is_file() and reference.has_transitions(conn):
            texts[machine] = reference.state_machine(conn, machine.read_text(encoding="utf-8"))
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
