"""Async connections with timeouts: pools, and single connections for LISTEN.

Connections use autocommit: one call of a function is one transaction and one round trip. Every wait
of psycopg on an open connection goes through `Connection.wait`: statements, commits and rollbacks.
So the timeout is implemented only there. ADR 23 describes timeouts and lost connections.
"""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeGuard, TypeVar

import anyio
import psycopg
import structlog
from psycopg import AsyncConnection, capabilities
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from treadle.db.connection import TCP_DEFAULTS, parsed
from treadle.db.errors import CallTimeout, translate_errors
from treadle.errors import TreadleError
from treadle.json import decode

log = structlog.get_logger(__name__)
T = TypeVar("T")

CALL_TIMEOUT_S = 30.0
# The time for the server to accept a cancellation, and then to end the statement.
CANCEL_S = 1.5
CANCELLED_S = 1.0
# A response that was sent has arrived after this time.
WATCH_AGAIN_S = 1.0
# The interval at which psycopg checks for interrupts.
_INTERVAL_S = 0.1
# A connection that was idle for this time is checked before use, with this timeout.
CHECK_AFTER_S = 1.0
CHECK_S = 2.0
# A pool increases the pauses between connection attempts for this time, then starts over.
RECONNECT_S = 5.0
# An idle connection is closed after this time; earlier in a pool that may become empty.
MAX_IDLE_S = 600.0
SPARE_IDLE_S = 60.0
# The time for a pool to close; then the remaining connections are cut.
CLOSE_S = 1.0
# A wait for a connection is logged after this time, and repeated at this interval.
WARN_AFTER_S = 5.0
WARN_EVERY_S = 30.0
# Longer than any attempt, whose timeout and lease end the wait.
NO_TIMEOUT_S = 7 * 86_400.0

# The state is null if this role may not see it; then the connection counts as active.
_ACTIVE = """
    select
      pg_backend_pid(),
      exists (
        select from pg_stat_activity
        where pid = %s and coalesce(state, '') not like 'idle%%'
      )
"""
_END = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where
      pid = %s and usename = current_user and application_name = %s and state like 'idle%%'
"""

Patience = Literal["connect", "shortage", "always"]


class Watch(Protocol):
    """Returns whether the server still runs a statement; with `end`, ends an idle session."""

    def __call__(self, conn: "Connection", *, end: bool = False) -> Awaitable[bool]: ...


class Connection(AsyncConnection[tuple[Any, ...]]):
    """An async connection whose statements have a timeout.

    When it expires, the connection tries to cancel the statement for a short time and is closed.
    Neither needs a response from the server, so a dead connection cannot block its users.
    """

    # The timeout of one statement; users that wait longer by design raise it while they hold the
    # connection.
    call_timeout_s = CALL_TIMEOUT_S
    # For long statements: checks every `watch_every_s` whether the server still runs the statement.
    # If not, the statement or its response was lost.
    watch: Watch | None = None
    watch_every_s = CALL_TIMEOUT_S
    # Whether to cancel a statement that times out; a health check does not need it.
    cancels_statements = True

    def __init__(self, pgconn: PGconn, *arguments: Any, **options: Any) -> None:
        super().__init__(pgconn, *arguments, **options)
        self.opened_at = self.answered_at = time.monotonic()
        # Whether the last call timed out without any response from the server.
        self.silent = False
        self._ending: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def wait(
        self, gen: PQGen[T], interval: float = _INTERVAL_S, timeout: float | None = None
    ) -> T:
        """Wait for a response until the timeout of calls; `timeout` is for notifications."""
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        seconds = self.call_timeout_s
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._time_out, seconds)
        watch_timer = None
        if self.watch is not None:
            watch_timer = loop.call_later(self.watch_every_s, self._start_watching)
        try:
            answer = await super().wait(gen, interval)
        except psycopg.Error as error:
            if self._watching is not None and self._watching.done():
                raise CallTimeout("no response and does not run the statement") from error
            if self._ending is None:
                raise
            self.silent = not isinstance(error, psycopg.errors.QueryCanceled)
            raise CallTimeout(f"no response within {seconds:g} s") from error
        finally:
            timer.cancel()
            if watch_timer is not None:
                watch_timer.cancel()
            if self._watching is not None:
                self._watching.cancel()
                self._watching = None
            if self._ending is not None:
                # A cancellation in progress could hit the next statement.
                self._ending.cancel()
                self._ending = None
                await self.close()
        self.answered_at = time.monotonic()
        return answer

    def _start_watching(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        """Cut the connection if the server does not run the statement."""
        while self.watch is not None:
            # Check twice: the response may be on its way.
            if not await self.watch(self):
                await asyncio.sleep(WATCH_AGAIN_S)
                if not await self.watch(self, end=True):
                    break
            await asyncio.sleep(self.watch_every_s)
        log.warning("connection.response_lost", backend_pid=self.info.backend_pid)
        self.cut()

    def _time_out(self, seconds: float) -> None:
        log.warning(
            "connection.timed_out",
            after_s=seconds,
            backend_pid=self.info.backend_pid,
            idle_before_s=round(max(0.0, time.monotonic() - seconds - self.answered_at), 1),
        )
        self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        """Try to cancel the statement, then cut the connection."""
        active = self.pgconn.transaction_status == TransactionStatus.ACTIVE
        if self.cancels_statements and active and capabilities.has_cancel_safe():
            with suppress(psycopg.Error, OSError):
                await self.cancel_safe(timeout=CANCEL_S)
                await asyncio.sleep(CANCELLED_S)
        self.cut()

    def cut(self) -> None:
        """Shut down the socket locally, which ends any wait on it."""
        with suppress(psycopg.Error, OSError):
            duplicate = socket.fromfd(self.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
            with duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)


class Pool(AsyncConnectionPool[Connection]):
    """A pool that checks idle connections before use and drops lost ones.

    `patience` is how long a caller waits for a connection: "connect" for the connect timeout,
    "shortage" also while all connections are in use, "always" without a limit.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        smallest: int = 1,
        connect_timeout_s: float,
        call_timeout_s: float = CALL_TIMEOUT_S,
        check_after_s: float = CHECK_AFTER_S,
        patience: Patience = "connect",
        name: str = "treadle",
        options: Mapping[str, Any],
    ) -> None:
        self.call_timeout_s = call_timeout_s
        self.contact_at = time.monotonic()
        self.patience = patience
        self._check_after_s = check_after_s
        self._dropped_at = 0.0
        self._warned_at = 0.0
        self._in_use: set[Connection] = set()
        self._process = os.getpid()
        super().__init__(
            url,
            connection_class=Connection,
            min_size=smallest,
            max_size=size,
            name=name,
            open=False,
            timeout=connect_timeout_s,
            max_idle=MAX_IDLE_S if smallest else SPARE_IDLE_S,
            reconnect_timeout=RECONNECT_S,
            reconnect_failed=_connect_again,
            configure=_configure,
            check=self._verify,
            kwargs=dict(options),
        )

    async def getconn(self, timeout: float | None = None) -> Connection:
        """Return a connection; wait for it according to `patience`."""
        if self.patience == "connect":
            conn = await super().getconn(timeout)
        else:
            conn = await self._wait_for_turn(timeout)
        conn.call_timeout_s = self.call_timeout_s
        self._in_use.add(conn)
        return conn

    async def putconn(self, conn: Connection) -> None:
        """Return a connection to the pool; if it was lost, drop the idle ones as well."""
        self._in_use.discard(conn)
        if conn.answered_at > self.contact_at:
            self.contact_at = conn.answered_at
        if conn.closed:
            await self._drop_idle(conn)
        await super().putconn(conn)

    async def close(self, timeout: float = 5.0) -> None:
        """Close the pool and cut the connections that are still in use."""
        try:
            await super().close(timeout)
        finally:
            for conn in list(self._in_use):
                conn.cut()

    async def is_active(self, conn: Connection, *, end: bool = False) -> bool:
        """Return whether the server still runs the statement of a connection.

        A second connection checks this. If it cannot tell, because the server is unreachable or
        behind a pooler, the result is true. With `end`, an idle session is terminated: its
        transaction may hold locks.
        """
        try:
            probe = await connect(
                str(self.conninfo),
                connect_timeout_s=self.timeout,
                name=f"{self.name}-probe",
                call_timeout_s=CHECK_S,
            )
        except (TreadleError, OSError):
            return True
        try:
            cursor = await probe.execute(_ACTIVE, (conn.info.backend_pid,))
            [(pid, active)] = await cursor.fetchall()
            if active or pid != probe.info.backend_pid:
                return True
            if end:
                name = conn.info.parameter_status("application_name")
                await probe.execute(_END, (conn.info.backend_pid, name))
        except psycopg.Error:
            return True
        finally:
            await probe.close()
        return False

    def abandon(self) -> None:
        """Close the connections of a pool whose event loop has ended."""
        # In a forked process they belong to the parent, which still uses them.
        if os.getpid() == self._process:
            for conn in [*self._pool, *self._in_use]:
                conn.pgconn.finish()

    async def _wait_for_turn(self, timeout: float | None) -> Connection:
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(WARN_AFTER_S, self._warn, began)
        if timeout is None and self.patience == "always":
            # One long wait: a new request would be queued behind the others.
            timeout = NO_TIMEOUT_S
        try:
            while True:
                try:
                    return await super().getconn(timeout)
                except PoolTimeout:
                    if len(self._in_use) < self.max_size:
                        raise
        finally:
            timer.cancel()

    def _warn(self, began: float) -> None:
        """Log that handlers are waiting for connections, at most once per interval."""
        now = time.monotonic()
        if now - self._warned_at < WARN_EVERY_S or self.closed:
            return
        self._warned_at = now
        log.warning(
            "pool.waiting",
            pool=self.name,
            waited_s=round(now - began, 1),
            in_use=len(self._in_use),
            size=self.max_size,
            waiting=self.get_stats()[self._REQUESTS_WAITING],
        )

    async def _verify(self, conn: Connection) -> None:
        """Check a connection that was idle, with a shorter timeout than that of a call."""
        if time.monotonic() - conn.answered_at < self._check_after_s:
            return
        conn.call_timeout_s = CHECK_S
        conn.cancels_statements = False
        try:
            await conn.execute("", prepare=False)
        except psycopg.Error:
            await self._drop_idle(conn)
            raise
        finally:
            conn.cancels_statements = True

    async def _drop_idle(self, lost: Connection) -> None:
        """Drop the idle connections: they were probably lost at the same time."""
        if lost.opened_at > self._dropped_at:
            self._dropped_at = time.monotonic()
            await self.drain()


def options(url: str, *, prepare: bool, connect_timeout_s: float, name: str) -> Mapping[str, Any]:
    """Return the options of every connection; parameters of the URL take precedence."""
    parameters = parsed(url)
    hosts = str(parameters.get("host") or parameters.get("hostaddr") or "").count(",") + 1
    defaults = {
        **TCP_DEFAULTS,
        # The timeout applies to each host: one that hangs must not use up the time of the others.
        "connect_timeout": max(1, round(connect_timeout_s / hosts)),
        # Skip standbys, so that the next host is tried after a failover.
        "target_session_attrs": "read-write",
    }
    return {
        "autocommit": True,
        # Behind a transaction pooler a prepared statement may be on another server connection.
        "prepare_threshold": 0 if prepare else None,
        "application_name": name,
        **{key: value for key, value in defaults.items() if key not in parameters},
    }


def make_pool(
    url: str,
    *,
    size: int,
    prepare: bool,
    connect_timeout_s: float,
    statement_timeout_s: float = 0,
    name: str = "treadle",
    **settings: Any,
) -> Pool:
    """Create a pool, which must be opened; it reconnects by itself.

    Without `prepare`, which means behind a transaction pooler, the statement timeout is not set:
    the pooler would reject the connection, or keep the setting for other clients.
    """
    connection_options = dict(
        options(url, prepare=prepare, connect_timeout_s=connect_timeout_s, name=name)
    )
    if statement_timeout_s > 0 and prepare:
        connection_options["options"] = _with_statement_timeout(url, statement_timeout_s)
    return Pool(
        url,
        size=size,
        connect_timeout_s=connect_timeout_s,
        name=name,
        options=connection_options,
        **settings,
    )


async def open_pool(pool: Pool) -> Pool:
    """Open a pool and wait for its first connection."""
    try:
        with translate_errors():
            await pool.open(wait=True, timeout=pool.timeout)
    except BaseException:
        await close_pool(pool)
        raise
    return pool


async def close_pool(pool: Pool) -> None:
    """Close a pool within a time limit."""
    with anyio.move_on_after(CLOSE_S + 1, shield=True):
        await pool.close(timeout=CLOSE_S)


async def connect(
    url: str, *, connect_timeout_s: float, name: str, call_timeout_s: float = CALL_TIMEOUT_S
) -> Connection:
    """Open a single connection outside the pools."""
    with translate_errors():
        conn = await Connection.connect(
            url, **options(url, prepare=False, connect_timeout_s=connect_timeout_s, name=name)
        )
    conn.call_timeout_s = call_timeout_s
    return conn


def _with_statement_timeout(url: str, seconds: float) -> str:
    """Add a statement timeout to the options of a URL, which override it."""
    options_of_url = parsed(url).get("options") or ""
    return f"-c statement_timeout={round(seconds * 1000)} {options_of_url}".strip()


async def _configure(conn: Connection) -> None:
    set_json_loads(decode, conn)


async def _connect_again(pool: AsyncConnectionPool[Any]) -> None:
    """Keep trying every second or two after the server was unreachable for long."""
    if not pool.closed and not pool.get_stats()[pool._POOL_AVAILABLE]:
        # The pool is empty, so this only starts new connections.
        await pool.check()


def is_sync(conn: object) -> TypeGuard[psycopg.Connection[Any]]:
    """Return whether a connection of the caller is a sync connection of psycopg."""
    return isinstance(conn, psycopg.Connection)
