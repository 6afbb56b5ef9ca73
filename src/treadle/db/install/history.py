"""What a database says about its own schema, and whether this code may go on from there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from treadle.db.install.files import code_checksum, migrations
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
    """One row of treadle.migrations."""

    version: int
    name: str
    checksum: str
    applied_at: datetime
    applied_by: str


@dataclass(frozen=True)
class AppliedMigrations:
    """The applied migrations and the checksum of the installed code; empty in an empty database."""

    applied: tuple[Applied, ...] = ()
    code: str | None = None

    @property
    def version(self) -> int | None:
        """The newest applied migration."""
        return max((row.version for row in self.applied), default=None)

    @property
    def unknown(self) -> list[int]:
        """Applied versions that this code does not have."""
        known = {migration.version for migration in migrations()}
        return [row.version for row in self.applied if row.version not in known]

    @property
    def changed(self) -> list[str]:
        """Applied migrations whose file was edited since."""
        files = {migration.version: migration for migration in migrations()}
        return [
            files[row.version].label
            for row in self.applied
            if row.version in files and files[row.version].checksum != row.checksum
        ]

    def check(self) -> None:
        """Raise when this code must not touch the schema."""
        if self.unknown:
            raise _too_new(max(self.unknown))
        if self.changed:
            raise MigrationChanged(
                f"applied migrations differ from their files: {', '.join(self.changed)}",
                hint="Restore the files of the release that applied them; changes go into a new"
                " migration.",
                migrations=self.changed,
            )


def schema_problem(applied_max: int | None, checksum: str | None) -> TreadleError | None:
    """Why this code cannot work on a schema with this version and code checksum, if so."""
    latest = migrations()[-1].version
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
    if checksum != code_checksum():
        return SchemaOutdated(
            "the functions in the database are not those of this code",
            hint=MIGRATE_HINT,
            part="code",
        )
    return None


def read_history(conn: psycopg.Connection[Any]) -> AppliedMigrations:
    """Read the history; inside a transaction it also becomes treadle_owner for the rest of it."""
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
        hint="Use a newer treadle; a schema never goes back.",
        version=version,
    )


def _foreign() -> SchemaError:
    return SchemaError(
        'a schema "treadle" exists that treadle did not make: it has no history in'
        " treadle.migrations",
        hint="Rename or drop that schema, or use another database.",
    )
