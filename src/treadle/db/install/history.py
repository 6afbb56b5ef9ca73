"""The applied migrations of a database, and whether this code may use its schema."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from treadle.db.install import files
from treadle.db.install.files import migrations
from treadle.errors import (
    MigrationChanged,
    SchemaError,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    TreadleError,
)

MIGRATE_HINT = "Run: treadle db migrate"


@dataclass(frozen=True)
class Applied:
    """A row of treadle.migrations."""

    version: int
    name: str
    checksum: str
    applied_at: datetime
    applied_by: str

    @property
    def label(self) -> str:
        """The name of its file without the ending."""
        return f"{self.version:04d}_{self.name}"


@dataclass(frozen=True)
class AppliedMigrations:
    """The applied migrations and the checksum of the installed code, if any."""

    applied: tuple[Applied, ...] = ()
    code: str | None = None

    @property
    def version(self) -> int | None:
        """The newest applied migration."""
        return max((row.version for row in self.applied), default=None)

    @property
    def unknown(self) -> list[int]:
        """The applied versions that this code does not have."""
        known = {migration.version for migration in migrations()}
        return [row.version for row in self.applied if row.version not in known]

    @property
    def changed(self) -> list[str]:
        """The applied migrations whose files were edited."""
        by_version = {migration.version: migration for migration in migrations()}
        return [
            by_version[row.version].label
            for row in self.applied
            if row.version in by_version and by_version[row.version].checksum != row.checksum
        ]

    @property
    def renamed(self) -> list[str]:
        """The applied migrations whose number belongs to another migration in this code."""
        names = {migration.version: migration.name for migration in migrations()}
        return [row.label for row in self.applied if names.get(row.version, row.name) != row.name]

    def check(self) -> None:
        """Raise SchemaError if this code must not change the schema."""
        # First: such a schema has changed and unknown migrations as well.
        if self.renamed:
            raise MigrationChanged(
                unreleased(self.renamed),
                hint="Export what you need, drop the schema treadle and install it again:"
                " treadle db migrate",
                migrations=self.renamed,
            )
        if self.unknown:
            raise _too_new(max(self.unknown))
        if self.changed:
            raise MigrationChanged(
                f"applied migrations differ from their files: {', '.join(self.changed)}",
                hint="Restore the files of the release that applied them; changes go into a new"
                " migration.",
                migrations=self.changed,
            )


def unreleased(renamed: list[str]) -> str:
    """Return the message for a schema with unreleased migrations."""
    return (
        "the schema was created by an unreleased version of treadle: this code has no migration "
        + renamed[0]
    )


@cache
def _release(folder: Path) -> tuple[int, str]:
    """The last migration and the code checksum of the SQL files, which a process reads once."""
    return files.migrations(folder)[-1].version, files.code_checksum(folder)


def schema_problem(applied_max: int | None, checksum: str | None) -> TreadleError | None:
    """Return the error if this code cannot use a schema of this version and checksum."""
    latest, expected = _release(files.sql_dir())
    if applied_max is None:
        return SchemaMissing("the database has no treadle schema", hint=MIGRATE_HINT)
    if applied_max > latest:
        return _too_new(applied_max)
    if applied_max < latest:
        return SchemaOutdated(
            f"the schema is at migration {applied_max}, this code needs {latest}",
            hint=MIGRATE_HINT,
            part="tables",
        )
    if checksum != expected:
        return SchemaOutdated(
            "the functions in the database differ from those of this code",
            hint=MIGRATE_HINT,
            part="code",
        )
    return None


def read_history(conn: psycopg.Connection[Any]) -> AppliedMigrations:
    """Read the applied migrations; in a transaction, the role stays treadle_owner afterwards."""
    rows = conn.execute(
        """
        select
          pg_catalog.pg_get_userbyid(pg_namespace.nspowner) = 'treadle_owner'
          and exists (
            select from pg_catalog.pg_class
            where pg_class.relnamespace = pg_namespace.oid and pg_class.relname = 'migrations'
              and pg_class.relkind = 'r'
          )
        from pg_catalog.pg_namespace
        where pg_namespace.nspname = 'treadle'
        """
    ).fetchall()
    if not rows:
        return AppliedMigrations()
    if not rows[0][0]:
        raise _foreign()
    try:
        with conn.transaction():
            conn.execute("set local role treadle_owner")
            found = conn.execute(
                """
                select version, name, checksum, applied_at, applied_by
                from treadle.migrations
                order by version
                """
            ).fetchall()
            code = conn.execute("select checksum from treadle.code").fetchone()
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
        raise _foreign() from None
    if not found:
        raise _foreign()
    return AppliedMigrations(tuple(Applied(*row) for row in found), code[0] if code else None)


def _too_new(version: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"the schema is at migration {version}, this code knows up to {migrations()[-1].version}",
        hint="Use a newer version of treadle; a schema cannot be downgraded.",
        version=version,
    )


def _foreign() -> SchemaError:
    return SchemaError(
        'the schema "treadle" was not created by treadle: it has no rows in treadle.migrations',
        hint="Rename or drop that schema, or use another database.",
    )
