"""Bring the schema of a database to the state of this code, and say how far it is.

Each migration is one transaction under one lock, so a kill at any moment leaves a database from
which the next run goes on, and two runners apply each migration once. Functions, views and
triggers are applied as a whole, in one transaction, when their text or the tables changed.
"""

from dataclasses import dataclass
from typing import Any

import psycopg

from treadle.db import schema
from treadle.db.direct import connect
from treadle.db.history import Applied, schema_problem, unreleased
from treadle.db.install import install_script
from treadle.db.runner import Runner, Say
from treadle.db.sqlfiles import ROLES, Migration, code_checksum, code_files, migrations
from treadle.db.trust import refuse_unknown_code
from treadle.errors import InvalidArgument

__all__ = [
    "Applied", "MigrateResult", "Migration", "SchemaStatus", "code_checksum", "code_files",
    "install_script", "migrate", "migrations", "schema_problem", "status", "verify",
]  # fmt: skip


@dataclass(frozen=True)
class MigrateResult:
    """What a run did."""

    version: int
    applied: list[str]
    code_applied: bool

    @property
    def changed(self) -> bool:
        """Whether the database was changed."""
        return bool(self.applied) or self.code_applied


@dataclass(frozen=True)
class SchemaStatus:
    """How the schema of a database relates to this code."""

    server: str
    version: int | None
    latest: int
    applied: list[Applied]
    pending: list[Migration]
    unknown: list[int]
    changed: list[str]
    renamed: list[str]
    code_current: bool

    @property
    def current(self) -> bool:
        """Whether there is nothing to do and nothing wrong."""
        return self.code_current and not (
            self.pending or self.unknown or self.changed or self.renamed
        )


def migrate(
    url: str, *, to: int | None = None, lock_timeout_s: float = 5.0, on_step: Say | None = None
) -> MigrateResult:
    """Apply what is missing; `to` stops after that migration and leaves the code for later."""
    files = migrations()
    if to is not None and not 1 <= to <= files[-1].version:
        raise InvalidArgument(f"there is no migration {to}; they are 1 to {files[-1].version}")
    with connect(url) as conn:
        refuse_unknown_code(conn)
        runner = Runner(conn, lock_timeout_s=lock_timeout_s, say=on_step or (lambda _: None))
        runner.read()
        runner.roles()
        applied = []
        while (migration := runner.next_migration(to or files[-1].version)) is not None:
            applied.append(migration.label)
        # The code fits the newest tables only.
        code = (to is None or to == files[-1].version) and runner.code()
        return MigrateResult(runner.read().version or 0, applied, code)


def status(url: str) -> SchemaStatus:
    """Compare the history in the database with the files; changes nothing."""
    files = migrations()
    with connect(url) as conn:
        refuse_unknown_code(conn)
        history = Runner(conn).read(refuse=False)
        done = {row.version for row in history.applied}
        return SchemaStatus(
            server=conn.info.parameter_status("server_version") or "",
            version=history.version,
            latest=files[-1].version,
            applied=list(history.applied),
            pending=[migration for migration in files if migration.version not in done],
            unknown=history.unknown,
            changed=history.changed,
            renamed=history.renamed,
            code_current=history.code == code_checksum(),
        )


def verify(url: str) -> list[str]:
    """Everything that is not as this code made it, one sentence each; empty is good."""
    found = status(url)
    if found.renamed:
        return [unreleased(found.renamed)]
    problems = [f"migration {migration.label} is not applied" for migration in found.pending]
    problems += [f"migration {version} is unknown to this code" for version in found.unknown]
    problems += [f"migration {label} was edited after it was applied" for label in found.changed]
    if not found.code_current and not found.pending:
        problems.append("the functions and views are not those of this code")
    if problems:
        return problems
    with connect(url) as conn:
        found_there = schema.differences(schema.snapshot(), schema.describe(conn))
        return [problem for problem in found_there if not _own_grant(problem)] + (
            schema.replaced_views(conn) if _may_create_temporary(conn) else []
        )


def _may_create_temporary(conn: psycopg.Connection[Any]) -> bool:
    row = conn.execute(
        "select pg_catalog.has_database_privilege(pg_catalog.current_database(), 'temporary')"
    ).fetchone()
    return bool(row and row[0])


def _own_grant(problem: str) -> bool:
    """Whether this is a right that the site gave to a role of its own."""
    _, found, line = problem.partition(" also has: grant ")
    role = line.removesuffix(";").removesuffix(" with grant option").rpartition(" to ")[2]
    return bool(found) and role not in ("public", *ROLES)
