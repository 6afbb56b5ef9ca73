"""The checks of `treadle doctor`: each has a finding and, if needed, an action.

They use one sync connection, so that they also work if the schema is missing or outdated.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import psycopg

from treadle.db.connection import connect_sync
from treadle.db.errors import to_treadle_error
from treadle.db.install.files import ROLES
from treadle.db.install.history import schema_problem
from treadle.db.install.trust import refuse_replaced_code
from treadle.errors import Forbidden, SchemaOutdated, TreadleError, Unavailable

Status = Literal["ok", "warn", "fail"]
Conn = psycopg.Connection[tuple[Any, ...]]

SKEW_S = 2.0
OLD_TRANSACTION = timedelta(minutes=10)
DEAD_TUPLES = 10_000
ECHO_WITHIN_S = 3.0
# The application_name of the connections that a worker counts.
WORKER_CONNECTIONS = ("treadle", "treadle-worker", "treadle-transactions", "treadle-listener")


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    check: str
    status: Status
    found: str
    todo: str | None = None


def examine(url: str, *, listen_url: str | None) -> Iterator[Check]:
    """Run all checks; raise Unavailable if the server does not respond."""
    began = time.monotonic()
    with connect_sync(url) as conn:
        took = (time.monotonic() - began) * 1000
        yield Check("connection", "ok", f"connected in {took:.0f} ms, {_login(conn)}")
        version = conn.info.parameter_status("server_version") or "?"
        yield Check("server", "ok", f"PostgreSQL {version}")
        schema = _schema(conn)
        yield from schema
        for look in (_roles, _temporary, _durability, _clock, _transactions):
            yield _safely(conn, look)
        if schema[0].status == "ok":
            yield _safely(conn, _connections)
        yield _listen(listen_url)
        if schema[0].status == "ok":
            for look in (_agents, _reaper, _promoter, _scheduler, _stuck, _vacuum):
                yield _safely(conn, look)


def _login(conn: Conn) -> str:
    name, database = _row(conn, "select current_user, current_database()")
    return f"as {name} on {database}"


def _schema(conn: Conn) -> list[Check]:
    try:
        refuse_replaced_code(conn)
    except SchemaOutdated as error:
        return [Check("schema", "fail", str(error), error.hint)]
    try:
        version, checksum = _row(
            conn, "select version, code_checksum from treadle.schema_version()"
        )
    except psycopg.Error as error:
        known = to_treadle_error(error)
        return [Check("schema", "fail", str(known), known.hint)]
    problem = schema_problem(version, checksum)
    if problem is None:
        return [
            Check("schema", "ok", f"at migration {version}"),
            Check("functions", "ok", "of this version of treadle"),
        ]
    if isinstance(problem, SchemaOutdated) and problem.detail.get("part") == "code":
        # Workers of both releases may run during an upgrade.
        return [
            Check("schema", "ok", f"at migration {version}"),
            Check("functions", "warn", str(problem), problem.hint),
        ]
    return [Check("schema", "fail", str(problem), problem.hint)]


def _roles(conn: Conn) -> Check:
    (superuser,) = _row(conn, "select rolsuper from pg_roles where rolname = current_user")
    if superuser:
        return Check("roles", "ok", "superuser: has all rights")
    held = conn.execute(
        """
        select rolname from pg_roles
        where rolname = any (%s) and pg_has_role(current_user, oid, 'member')
        order by rolname
        """,
        (list(ROLES),),
    ).fetchall()
    if held:
        return Check("roles", "ok", ", ".join(str(row[0]) for row in held))
    return Check(
        "roles", "fail", "this login has no treadle role",
        "As the owner of the schema: grant treadle_worker to the login, or another treadle role.",
    )  # fmt: skip


def _temporary(conn: Conn) -> Check:
    """Check that PUBLIC cannot create temporary objects, which can shadow others by name."""
    database, public = _row(
        conn,
        """
        select
          pg_catalog.quote_ident(datname),
          exists (
            select from pg_catalog.aclexplode(
              coalesce(datacl, pg_catalog.acldefault('d', datdba))
            )
            where grantee = 0 and privilege_type = 'TEMPORARY'
          )
        from pg_catalog.pg_database
        where datname = pg_catalog.current_database()
        """,
    )
    if not public:
        return Check("temporary", "ok", "PUBLIC may not create temporary objects")
    return Check(
        "temporary", "warn", "PUBLIC may create temporary objects in this database",
        "If no other program needs them, as the owner of the database:"
        f" revoke temporary on database {database} from public;",
    )  # fmt: skip


def _durability(conn: Conn) -> Check:
    fsync, pages = _row(
        conn, "select current_setting('fsync'), current_setting('full_page_writes')"
    )
    found = f"fsync {fsync}, full_page_writes {pages}"
    if fsync == "off":
        return Check("durability", "fail", found, "A crash can lose tasks: set fsync = on.")
    if pages == "off":
        todo = "Set full_page_writes = on, unless the file system prevents partial page writes."
        return Check("durability", "warn", found, todo)
    return Check("durability", "ok", found)


def _clock(conn: Conn) -> Check:
    before = datetime.now(tz=UTC)
    (server_time,) = _row(conn, "select clock_timestamp()")
    local_time = before + (datetime.now(tz=UTC) - before) / 2
    skew = (server_time - local_time).total_seconds()
    found = f"{abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this machine"
    if abs(skew) <= SKEW_S:
        return Check("clock", "ok", found)
    todo = "Use NTP. Leases use the clock of the server; only ages shown here are wrong."
    return Check("clock", "warn", found, todo)


def _transactions(conn: Conn) -> Check:
    (oldest,) = _row(
        conn,
        """
        select max(clock_timestamp() - begun) from (
          select xact_start as begun from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()
            and backend_type = 'client backend'
          union all
          select prepared from pg_prepared_xacts where database = current_database()
        ) as open
        """,
    )
    if oldest is None:
        return Check("transactions", "ok", "no open transaction")
    found = f"the oldest has been open for {oldest.total_seconds():.0f} s"
    if oldest < OLD_TRANSACTION:
        return Check("transactions", "ok", found)
    todo = "Find it in pg_stat_activity: it prevents the removal of dead rows and slows claims."
    return Check("transactions", "warn", found, todo)


def _connections(conn: Conn) -> Check:
    """Check that max_connections is enough for all workers and other clients."""
    most, reserved, others, workers, may_open, pid = _row(
        conn,
        """
        select
          current_setting('max_connections')::integer,
          current_setting('superuser_reserved_connections')::integer
          + coalesce(current_setting('reserved_connections', true)::integer, 0),
          (select count(*) from pg_stat_activity
           where backend_type = 'client backend' and pid <> pg_backend_pid()
             and application_name <> all (%s)),
          count(*),
          coalesce(sum((meta ->> 'connections')::numeric), 0)::bigint,
          pg_backend_pid()
        from treadle.agent_load
        where alive and jsonb_typeof(meta -> 'connections') = 'number'
        """,
        (list(WORKER_CONNECTIONS),),
    )
    found = f"{workers} workers may open {may_open}, others have {others}, of {most - reserved}"
    if pid != conn.info.backend_pid:
        return Check("connections", "ok", f"{found}; connected through a pooler")
    if may_open + others <= most - reserved:
        return Check("connections", "ok", found)
    return Check(
        "connections", "warn", found,
        "Raise max_connections, use a pooler, or lower TREADLE_TRANSACTION_CONNECTIONS, "
        "TREADLE_POOL_SIZE or TREADLE_SLOTS: handlers wait for free connections.",
    )  # fmt: skip


def _listen(url: str | None) -> Check:
    if url is None:
        return Check("listen", "ok", "off: workers poll")
    with connect_sync(url) as conn:
        channel = f"treadle_doctor_{conn.info.backend_pid}"
        conn.execute(f"listen {channel}".encode())
        conn.execute("select pg_notify(%s, '')", (channel,))
        if any(True for _ in conn.notifies(timeout=ECHO_WITHIN_S, stop_after=1)):
            return Check("listen", "ok", "a notification arrived")
    return Check(
        "listen", "warn", "no notification arrived: workers only poll",
        "Behind a transaction pooler, set TREADLE_LISTEN_URL to a direct connection.",
    )  # fmt: skip


def _agents(conn: Conn) -> Check:
    alive, busy = _row(
        conn,
        """
        select count(*) filter (where alive), coalesce(sum(current_tasks), 0)
        from treadle.agent_load
        """,
    )
    if alive:
        return Check("agents", "ok", f"{alive} alive, {busy} tasks in progress")
    return Check("agents", "warn", "no agent is alive", "Start one: treadle worker my_module:app")


def _reaper(conn: Conn) -> Check:
    return _service(conn, "reaper", "the claim of %", "Tasks of crashed workers are not retried.")


def _promoter(conn: Conn) -> Check:
    return _service(
        conn, "promoter", "due since %", "Retries and delayed tasks do not become ready."
    )


def _scheduler(conn: Conn) -> Check:
    """Check for late and stopped schedules; without schedules, no scheduler is needed."""
    known, late, stopped, connected = _row(
        conn,
        """
        select
          count(*),
          count(*) filter (
            where state = 'active' and coalesce(next_at, updated_at)
            < treadle.clock() - interval '1 minute'
          ),
          string_agg(name, ', ') filter (where state = 'stopped'),
          (select count(*) from pg_stat_activity
           where datname = current_database() and application_name = 'treadle-scheduler')
        from treadle.schedule_status
        """,
    )
    todo = "Schedules do not run. Start a scheduler: treadle scheduler"
    if late:
        return Check("scheduler", "fail", f"{late} schedules are late", todo)
    if stopped:
        return Check("scheduler", "warn", f"stopped: {stopped}", "See: treadle schedules show NAME")
    if known and not connected:
        return Check("scheduler", "warn", "no scheduler is connected", todo)
    return Check("scheduler", "ok", f"{known} schedules, none is late")


def _service(conn: Conn, name: str, left: str, harm: str) -> Check:
    connected, late = _row(
        conn,
        """
        select
          (select count(distinct pid) from pg_stat_activity
           where datname = current_database() and application_name = %s),
          (select coalesce(sum(tasks), 0) from treadle.stuck where reason like %s)
        """,
        (f"treadle-{name}", left),
    )
    todo = f"{harm} Start a {name}: treadle {name}"
    if late:
        return Check(name, "fail", f"{late} tasks are overdue", todo)
    if not connected:
        return Check(name, "warn", f"no {name} is connected", todo)
    return Check(name, "ok", "connected, no task is overdue")


def _stuck(conn: Conn) -> Check:
    rows = conn.execute(
        """
        select reason, sum(tasks) from treadle.stuck
        where status = 'ready' group by reason order by 2 desc
        """
    ).fetchall()
    if not rows:
        return Check("stuck", "ok", "every ready task has a worker that can claim it")
    found = f"{sum(row[1] for row in rows)} ready tasks cannot be claimed: {rows[0][0]}"
    return Check("stuck", "warn", found, "See all of them: treadle queues stuck")


def _vacuum(conn: Conn) -> Check:
    dead, live = _row(
        conn,
        """
        select n_dead_tup, n_live_tup from pg_stat_all_tables
        where schemaname = 'treadle' and relname = 'tasks'
        """,
    )
    found = f"{dead} dead and {live} live rows in tasks"
    if dead <= max(DEAD_TUPLES, 5 * live):
        return Check("vacuum", "ok", found)
    todo = "Run vacuum treadle.tasks; check autovacuum and long transactions."
    return Check("vacuum", "warn", found, todo)


def _safely(conn: Conn, look: Callable[[Conn], Check]) -> Check:
    """Run a check; an error, such as missing rights, is a warning and does not stop the others."""
    try:
        return look(conn)
    except psycopg.Error as error:
        known = to_treadle_error(error)
        if isinstance(known, Unavailable):
            raise known from error
        denied = isinstance(known, Forbidden)
        todo = "Grant treadle_observer to this login." if denied else known.hint
        return Check(look.__name__.removeprefix("_"), "warn", str(known), todo)


def _row(conn: Conn, query: str, parameters: tuple[object, ...] = ()) -> tuple[Any, ...]:
    found = conn.execute(query.encode(), parameters or None).fetchone()
    if found is None:
        raise TreadleError("a check returned no row")
    return found
