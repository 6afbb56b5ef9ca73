"""Migrate the schema of a database, and report its status.

Each migration is one transaction under one lock. So the next run can continue after a kill at any
time, and two concurrent runners apply each migration once. Functions, views and triggers are
applied as a whole, in one transaction, when their text or the tables have changed.

The lock is a lock on the table treadle.migrations, which only the owner may lock; an advisory lock
could be held by any login. Each step reads under the lock what its changes depend on. Before the
table exists, concurrent first installations conflict at `create schema`.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql

from treadle.db.connection import connect_sync
from treadle.db.errors import describe_error
from treadle.db.install import files, schema
from treadle.db.install.files import (
    ROLES,
    SESSION,
    Migration,
    code_checksum,
    code_files,
    functions,
    install_script,
    migrations,
)
from treadle.db.install.history import (
    Applied,
    AppliedMigrations,
    read_history,
    schema_problem,
    unreleased,
)
from treadle.db.install.trust import refuse_unknown_code
from treadle.errors import InvalidArgument, SchemaError, Unavailable

TRIES = 5
# Waiting for another runner blocks no one, so it may take longer than waiting for a table.
RUNNER_WAIT_S = 60.0

_LOCKS = (errors.LockNotAvailable, errors.DeadlockDetected)
# The databases of a server share their roles, so runners may update the same rows concurrently.
_SHARED = (*_LOCKS, errors.InternalError_, errors.UniqueViolation)
# The errors of `create schema` if another first installation was faster.
_OVERTAKEN = (errors.DuplicateSchema, errors.UniqueViolation)

LOCK = "lock table treadle.migrations in share row exclusive mode"
_LOCKABLE = """
select exists (
  select from pg_catalog.pg_class
  inner join pg_catalog.pg_namespace on pg_class.relnamespace = pg_namespace.oid
  where
    pg_namespace.nspname = 'treadle' and pg_class.relname = 'migrations'
    and pg_catalog.pg_get_userbyid(pg_class.relowner) = 'treadle_owner'
)
"""
_HOLDERS = """
select distinct
  pg_catalog.format(
    'process %s of %s (%s), in a transaction since %s',
    pg_stat_activity.pid, pg_stat_activity.usename,
    coalesce(nullif(pg_stat_activity.application_name, ''), 'no application name'),
    coalesce(pg_catalog.date_trunc('second', pg_stat_activity.xact_start)::text, 'an unknown time')
  )
from pg_catalog.pg_locks
inner join pg_catalog.pg_stat_activity on pg_locks.pid = pg_stat_activity.pid
inner join pg_catalog.pg_class on pg_locks.relation = pg_class.oid
inner join pg_catalog.pg_namespace on pg_class.relnamespace = pg_namespace.oid
where
  pg_namespace.nspname = 'treadle' and pg_class.relname = 'migrations' and pg_locks.granted
  and pg_locks.database = (
    select pg_database.oid from pg_catalog.pg_database
    where pg_database.datname = pg_catalog.current_database()
  )
  and pg_locks.mode not in ('AccessShareLock', 'RowShareLock')
order by 1
"""
# Objects that the owner cannot replace or revoke rights on.
_FOREIGN = """
select
  pg_catalog.pg_describe_object(object.classid, object.oid, 0),
  pg_catalog.pg_get_userbyid(object.owner)
from pg_catalog.pg_namespace
inner join lateral (
  select 'pg_catalog.pg_proc'::regclass as classid, pg_proc.oid, pg_proc.proowner as owner
  from pg_catalog.pg_proc
  where pg_proc.pronamespace = pg_namespace.oid
  union all
  select 'pg_catalog.pg_class'::regclass, pg_class.oid, pg_class.relowner
  from pg_catalog.pg_class
  where
    pg_class.relnamespace = pg_namespace.oid
    and pg_class.relkind in ('r', 'p', 'f', 'v', 'm', 'S')
) as object on pg_catalog.pg_get_userbyid(object.owner) <> 'treadle_owner'
where pg_namespace.nspname = 'treadle'
order by 1
"""
_SHOWN = 5

Say = Callable[[str], None]
T = TypeVar("T")
__all__ = [
    "Applied", "MigrateResult", "Migration", "SchemaStatus", "code_checksum", "code_files",
    "install_script", "migrate", "migrations", "schema_problem", "status", "verify",
]  # fmt: skip


class Runner:
    """The steps of a migration on one connection."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        *,
        lock_timeout_s: float = 5.0,
        say: Say = lambda _: None,
    ) -> None:
        self._conn = conn
        self._lock_timeout_s = lock_timeout_s
        self._say = say
        self._failed = ""

    def read(self, *, refuse: bool = True) -> AppliedMigrations:
        """Read the applied migrations; with `refuse`, raise if this code must not change them."""
        try:
            with self._conn.transaction():
                history = read_history(self._conn)
        except psycopg.Error as error:
            raise describe_error(error, "reading the applied migrations") from error
        if refuse:
            history.check()
        return history

    def roles(self) -> None:
        """Create the roles that are missing."""

        def step() -> None:
            # Without the lock: several sessions may run the file concurrently, and only this file
            # makes the login a member of the owner.
            with self._transaction():
                self._execute("roles.sql", files.roles_sql())

        self._retry("creating the roles", step, retried=_SHARED)

    def next_migration(self, to: int) -> Migration | None:
        """Apply the first pending migration; return None if there is none."""

        def step() -> Migration | None:
            first = False
            try:
                with self._locked():
                    # Read again under the lock: another runner may have applied migrations.
                    history = read_history(self._conn)
                    history.check()
                    first = not history.applied
                    done = {row.version for row in history.applied}
                    pending = [m for m in migrations() if m.version not in done and m.version <= to]
                    if not pending:
                        return None
                    self._say(f"applying {pending[0].label}")
                    self._apply(pending[0])
                    return pending[0]
            except _OVERTAKEN:
                if not first or not self._is_lockable():
                    raise
                return step()

        return self._retry("applying a migration", step)

    def code(self) -> bool:
        """Apply functions, views and triggers if they differ; return whether they did."""

        def step() -> bool:
            with self._locked():
                history = read_history(self._conn)
                history.check()
                if history.code == code_checksum():
                    return False
                self._say("applying functions, views and triggers")
                self._apply_code()
                return True

        return self._retry("applying functions, views and triggers", step)

    def _apply(self, migration: Migration) -> None:
        if migration.version > 1:
            self._conn.execute("set local role treadle_owner")
        self._execute(f"migrations/{migration.label}.sql", migration.sql)
        self._conn.execute(
            "insert into treadle.migrations (version, name, checksum) values (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )
        # The code was written for the old tables; a migration may also drop functions.
        self._conn.execute("delete from treadle.code")

    def _apply_code(self) -> None:
        conn, files = self._conn, code_files()
        conn.execute("set local role treadle_owner")
        conn.execute("set local check_function_bodies = off")
        views = conn.execute(
            """
            select pg_views.viewname from pg_catalog.pg_views
            where pg_views.schemaname = 'treadle' and pg_views.viewowner = 'treadle_owner'
            """
        ).fetchall()
        if views:
            # In one statement and without cascade: a foreign view that depends on one is an error.
            names = sql.SQL(", ").join(sql.Identifier("treadle", row[0]) for row in views)
            conn.execute(sql.SQL("drop view {}").format(names))
        self._reset_functions()
        for path, text in files:
            self._execute(path, text)
        conn.execute(
            """
            insert into treadle.code (checksum) values (%s)
            on conflict (only_row) do update
            set checksum = excluded.checksum, applied_at = clock_timestamp()
            """,
            (code_checksum(),),
        )

    def _reset_functions(self) -> None:
        """Remove old rights and comments, which `create or replace` would keep."""
        roles = ", ".join(("public", *ROLES))
        self._conn.execute(f"revoke all on all routines in schema treadle from {roles}".encode())
        commented = self._conn.execute(
            """
            select pg_proc.oid::regprocedure::text
            from pg_catalog.pg_proc
            inner join pg_catalog.pg_namespace on pg_namespace.oid = pg_proc.pronamespace
            where
              pg_namespace.nspname = 'treadle' and pg_proc.proname = any (%s)
              and pg_catalog.obj_description(pg_proc.oid, 'pg_proc') is not null
            """,
            (list(functions()),),
        ).fetchall()
        for (name,) in commented:
            self._conn.execute(f"comment on routine {name} is null".encode())

    def _refuse_foreign(self) -> None:
        """Raise SchemaError if another role owns a routine, table or view of the schema."""
        found = [f"{name} ({owner})" for name, owner in self._conn.execute(_FOREIGN.encode())]
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise SchemaError(
                "schema treadle contains objects that treadle_owner does not own: "
                + ", ".join(found[:_SHOWN])
                + more,
                hint="Drop them or move them to another schema. If they belong to treadle, change"
                " their owner: alter function ... owner to treadle_owner;",
                objects=found,
            )

    def _execute(self, path: str, text: str) -> None:
        try:
            self._conn.execute(text.encode())
        except psycopg.Error as error:
            self._failed = path
            if error.diag.statement_position:
                line = text.count("\n", 0, int(error.diag.statement_position)) + 1
                self._failed = f"{path} line {line}"
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._conn.transaction():
            self._conn.execute("\n".join(SESSION).encode())
            self._set_lock_timeout(self._lock_timeout_s)
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._transaction():
            if self._is_lockable():
                self._conn.execute("set local role treadle_owner")
                self._lock()
                self._refuse_foreign()
            yield

    def _is_lockable(self) -> bool:
        """Return whether the table of the lock exists and treadle_owner owns it."""
        return self._conn.execute(_LOCKABLE.encode()).fetchone() == (True,)

    def _lock(self) -> None:
        self._set_lock_timeout(RUNNER_WAIT_S)
        try:
            with self._conn.transaction():
                self._conn.execute(LOCK.encode())
        except errors.LockNotAvailable:
            holders = [row[0] for row in self._conn.execute(_HOLDERS.encode()).fetchall()]
            raise Unavailable(
                f"another migration has been running for {RUNNER_WAIT_S:.0f} s",
                hint=f"Wait for it to end, then run this again. The lock on treadle.migrations is"
                f" held by {'; '.join(holders) or 'nobody any more'}.",
            ) from None
        self._set_lock_timeout(self._lock_timeout_s)

    def _set_lock_timeout(self, seconds: float) -> None:
        # Zero would mean no timeout.
        milliseconds = max(1, round(seconds * 1000))
        self._conn.execute(
            "select pg_catalog.set_config('lock_timeout', %s, true)", (f"{milliseconds}ms",)
        )

    def _retry(
        self,
        doing: str,
        step: Callable[[], T],
        *,
        retried: tuple[type[psycopg.Error], ...] = _LOCKS,
    ) -> T:
        tries = 0
        while True:
            tries += 1
            self._failed = doing
            try:
                return step()
            except psycopg.Error as error:
                if not isinstance(error, retried) or tries == TRIES:
                    raise describe_error(error, self._failed) from error
            self._say(f"{doing}: waiting for a lock, trying again")
            # Pause as long as the wait, so that statements queued behind it can run.
            time.sleep(self._lock_timeout_s * random.uniform(0.5, 1.5))


@dataclass(frozen=True)
class MigrateResult:
    """The result of a migration."""

    version: int
    applied: list[str]
    code_applied: bool

    @property
    def changed(self) -> bool:
        """Whether the database was changed."""
        return bool(self.applied) or self.code_applied


@dataclass(frozen=True)
class SchemaStatus:
    """The status of the schema of a database, compared with this code."""

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
        """Whether the schema is up to date and unchanged."""
        return self.code_current and not (
            self.pending or self.unknown or self.changed or self.renamed
        )


def migrate(
    url: str, *, to: int | None = None, lock_timeout_s: float = 5.0, on_step: Say | None = None
) -> MigrateResult:
    """Migrate the schema; with `to`, stop after that migration and do not apply the code."""
    files = migrations()
    if to is not None and not 1 <= to <= files[-1].version:
        raise InvalidArgument(f"there is no migration {to}", hint=f"Use 1 to {files[-1].version}.")
    with connect_sync(url) as conn:
        refuse_unknown_code(conn)
        runner = Runner(conn, lock_timeout_s=lock_timeout_s, say=on_step or (lambda _: None))
        runner.read()
        runner.roles()
        applied = []
        while (migration := runner.next_migration(to or files[-1].version)) is not None:
            applied.append(migration.label)
        # The code works only with the newest tables.
        code = (to is None or to == files[-1].version) and runner.code()
        return MigrateResult(runner.read().version or 0, applied, code)


def status(url: str) -> SchemaStatus:
    """Compare the applied migrations with the files, without changes."""
    files = migrations()
    with connect_sync(url) as conn:
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
    """Return the differences between the schema and this code, one sentence each."""
    found = status(url)
    if found.renamed:
        return [unreleased(found.renamed)]
    problems = [f"migration {migration.label} is not applied" for migration in found.pending]
    problems += [f"migration {version} is unknown to this code" for version in found.unknown]
    problems += [f"migration {label} was edited after it was applied" for label in found.changed]
    if not found.code_current and not found.pending:
        problems.append("the functions and views differ from those of this code")
    if problems:
        return problems
    with connect_sync(url) as conn:
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
    """Return whether a difference is a grant to a role that does not belong to treadle."""
    _, found, line = problem.partition(" also has: grant ")
    role = line.removesuffix(";").removesuffix(" with grant option").rpartition(" to ")[2]
    return bool(found) and role not in ("public", *ROLES)
