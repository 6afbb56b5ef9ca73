"""Connections: one pool per purpose, single ones for LISTEN, and plain ones for one-shot commands.

Connections are in autocommit: one call of a function is one transaction and one round trip. See
ADR 23 for deadlines, and for what becomes of a pool whose connections were lost. A plain connection
is for migrations and their status only; everything that runs for long uses the pool.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any, Literal, TypeGuard

import anyio
import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from treadle.db.connection import CALL_TIMEOUT_S, Connection
from treadle.db.errors import to_treadle_error, translate_errors
from treadle.errors import ConfigurationError, Forbidden, SchemaError, TreadleError, Unavailable
from treadle.json import decode

log = structlog.get_logger(__name__)

# A connection that nobody has used for so long is asked first, and has so long to answer.
CHECK_AFTER_S = 1.0
CHECK_S = 2.0
# A pool tries to connect for so long with growing pauses, then begins with short ones again.
RECONNECT_S = 5.0
# A connection that was not needed for so long is closed; sooner in a pool that may be empty.
MAX_IDLE_S = 600.0
SPARE_IDLE_S = 60.0
# How long a pool may take to close; what is left then is cut off.
CLOSE_S = 1.0
# A wait of this length for a connection is a warning, repeated once in a while.
WARN_AFTER_S = 5.0
WARN_EVERY_S = 30.0
# Longer than any attempt: its deadline and its lease end the wait.
FOR_EVER_S = 7 * 86_400.0

# A state that this role may not see is no news.
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
CONNECT_TIMEOUT_S = 10
OLDEST_SERVER = 150000
# A peer that vanished is noticed within 25 seconds. Parameters of the URL take precedence.
TCP_DEFAULTS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

_PASSWORDS = (
    re.compile(r"(?<=://)([^:/@\s]*):[^\s]*(?=@)"),
    re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE),
)


class Pool(AsyncConnectionPool[Connection]):
    """A pool that avoids handing out connections that were lost.

    `patience` says how long a caller waits for a connection: "connect" is the time for connecting,
    "shortage" goes on while all connections are in use, and "always" goes on whatever the reason.
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
        """A connection, waited for as the patience of the pool says."""
        if self.patience == "connect":
            conn = await super().getconn(timeout)
        else:
            conn = await self._wait_for_turn(timeout)
        conn.call_timeout_s = self.call_timeout_s
        self._in_use.add(conn)
        return conn

    async def putconn(self, conn: Connection) -> None:
        """Take a connection back; one that was lost takes the idle ones along."""
        self._in_use.discard(conn)
        if conn.answered_at > self.contact_at:
            self.contact_at = conn.answered_at
        if conn.closed:
            await self._drop_idle(conn)
        await super().putconn(conn)

    async def close(self, timeout: float = 5.0) -> None:
        """Close, and cut off whoever still waits for an answer."""
        try:
            await super().close(timeout)
        finally:
            for conn in list(self._in_use):
                conn.cut()

    async def is_active(self, conn: Connection, *, end: bool = False) -> bool:
        """Whether the server works on what this connection asked for, as another one sees it.

        Also when nobody can tell: the server cannot be reached, or a pooler stands in between. With
        `end`, a session that waits for us in vain is ended: its transaction may hold locks.
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

    async def _wait_for_turn(self, timeout: float | None) -> Connection:
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(WARN_AFTER_S, self._warn, began)
        if timeout is None and self.patience == "always":
            # One long wait: a caller that asks again would have to stand behind the others.
            timeout = FOR_EVER_S
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
        """Say that handlers wait for connections; once in a while for all that wait."""
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
        """Ask a connection that was idle whether it lives: that costs less than a deadline."""
        if time.monotonic() - conn.answered_at < self._check_after_s:
            return
        conn.call_timeout_s = CHECK_S
        conn.asks_to_stop = False
        try:
            await conn.execute("", prepare=False)
        except psycopg.Error:
            await self._drop_idle(conn)
            raise
        finally:
            conn.asks_to_stop = True

    async def _drop_idle(self, lost: Connection) -> None:
        """Give up the idle connections too: what happened to one has often happened to all."""
        if lost.opened_at > self._dropped_at:
            self._dropped_at = time.monotonic()
            await self.drain()


def options(url: str, *, prepare: bool, connect_timeout_s: float, name: str) -> Mapping[str, Any]:
    """What every connection of treadle is opened with; the URL may say otherwise about TCP."""
    given = parsed(url)
    hosts = str(given.get("host") or given.get("hostaddr") or "").count(",") + 1
    defaults = {
        **TCP_DEFAULTS,
        # It counts for each host: a frozen one must not take the time of the others.
        "connect_timeout": max(1, round(connect_timeout_s / hosts)),
        # A standby could answer nothing that we ask; after a failover the next host is tried.
        "target_session_attrs": "read-write",
    }
    return {
        "autocommit": True,
        # Behind a transaction pooler a prepared statement may be on another server connection.
        "prepare_threshold": 0 if prepare else None,
        "application_name": name,
        **{key: value for key, value in defaults.items() if key not in given},
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
    """A pool that is not open yet; it reconnects by itself.

    Behind a transaction pooler a limit for statements cannot be sent: it would refuse the
    connection, or keep the limit for others.
    """
    given = dict(options(url, prepare=prepare, connect_timeout_s=connect_timeout_s, name=name))
    if statement_timeout_s > 0 and prepare:
        given["options"] = _limited(url, statement_timeout_s)
    return Pool(
        url,
        size=size,
        connect_timeout_s=connect_timeout_s,
        name=name,
        options=given,
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
    """Close a pool; what takes too long is cut off."""
    with anyio.move_on_after(CLOSE_S + 1, shield=True):
        await pool.close(timeout=CLOSE_S)


async def connect(
    url: str, *, connect_timeout_s: float, name: str, call_timeout_s: float = CALL_TIMEOUT_S
) -> Connection:
    """One connection of its own, outside the pool."""
    with translate_errors():
        conn = await Connection.connect(
            url, **options(url, prepare=False, connect_timeout_s=connect_timeout_s, name=name)
        )
    conn.call_timeout_s = call_timeout_s
    return conn


def _limited(url: str, seconds: float) -> str:
    """The options of a URL with a limit for statements; one that it has already stays."""
    given = parsed(url).get("options") or ""
    return f"-c statement_timeout={round(seconds * 1000)} {given}".strip()


async def _configure(conn: Connection) -> None:
    set_json_loads(decode, conn)


async def _connect_again(pool: AsyncConnectionPool[Any]) -> None:
    """After the server was away for long it is still tried every second or two."""
    if not pool.closed and not pool.get_stats()[pool._POOL_AVAILABLE]:
        # With nothing to check this does one thing: it lets the pool grow.
        await pool.check()


def is_sync(conn: object) -> TypeGuard[psycopg.Connection[Any]]:
    """Whether a caller's connection is a plain psycopg one."""
    return isinstance(conn, psycopg.Connection)


def connect_sync(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Open an autocommit connection; no answer in time is an error, not a wait."""
    options = {
        **TCP_DEFAULTS,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "treadle db",
        **parsed(url),
        "client_encoding": "utf8",
    }
    try:
        conn = psycopg.connect(autocommit=True, prepare_threshold=None, **options)
    except psycopg.OperationalError as error:
        said = mask_password(_said(error))
        if options.get("password"):
            said = said.replace(str(options["password"]), "***")
        raise Unavailable(
            f"cannot connect to {_target(options)}: {said}",
            hint="Is the server up, and are host, port, name and password right?",
        ) from None
    try:
        refuse_old_server(conn.info.server_version)
    except TreadleError:
        conn.close()
        raise
    return conn


def parsed(url: str) -> dict[str, Any]:
    """The parts of a database URL; an error without any password when it cannot be read."""
    try:
        return {**conninfo_to_dict(url)}
    except psycopg.ProgrammingError as error:
        # libpq quotes what it could not read, which may be a password.
        said = re.sub(r'"(?![a-z_]+")[^"]*"', '"***"', mask_password(_said(error)))
        raise ConfigurationError(
            f"the database URL is wrong: {said}", hint="postgresql://user:password@host:5432/name"
        ) from None


def refuse_old_server(version: int) -> None:
    """Raise unless the server is one that treadle is tested on."""
    if version < OLDEST_SERVER:
        raise ConfigurationError(
            f"the server is PostgreSQL {version // 10000}; treadle needs 15 or newer",
            hint="Upgrade the server, or use the embedded one: treadle dev",
        )


def mask_password(text: str) -> str:
    """The text without the password of any URL or connection string in it."""
    text = _PASSWORDS[0].sub(r"\1:***", text)
    return _PASSWORDS[1].sub(r"\1***", text)


def describe_error(error: psycopg.Error, doing: str) -> TreadleError:
    """The treadle error for a database error, with what was being done in its message."""
    code, said = error.sqlstate or "", error.diag.message_primary or _said(error)
    hint, detail = error.diag.message_hint, error.diag.message_detail
    if code.startswith("TR") and (known := to_treadle_error(error)) is not None:
        return known
    if code in ("55P03", "40P01"):
        return Unavailable(
            f"{doing}: a lock was not free in time",
            hint="Nothing was changed by it. See who holds it in pg_locks and pg_stat_activity,"
            " then run it again; the wait is --lock-timeout.",
        )
    if not code or code.startswith(("08", "53", "57P")):
        return Unavailable(
            f"{doing}: {said}", hint="Run it again: what was finished stays, the rest was undone."
        )
    if code == "42501":
        return Forbidden(
            f"{doing}: {said}",
            hint="Use a login that is a member of treadle_owner and may create in this database.",
        )
    if code == "2BP01":
        return SchemaError(
            f"{doing}: {said}: {detail}",
            hint="Drop what depends on it, migrate, then create it again.",
        )
    return SchemaError(f"{doing}: {said}" + (f" ({detail})" if detail else ""), hint=hint)


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _target(options: dict[str, Any]) -> str:
    where = options.get("host") or options.get("hostaddr") or "the default server"
    if options.get("port"):
        where = f"{where}:{options['port']}"
    return f"database {options.get('dbname') or '(default)'} at {where}"
