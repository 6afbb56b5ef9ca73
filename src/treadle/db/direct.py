"""One plain connection for a one-shot command, and its troubles as treadle errors.

For migrations and their status only; everything that runs for long uses the pool.
"""

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from treadle.db.translate import translate
from treadle.errors import ConfigurationError, Forbidden, SchemaError, TreadleError, Unavailable

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


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
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
        said = masked(_said(error))
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
        said = re.sub(r'"(?![a-z_]+")[^"]*"', '"***"', masked(_said(error)))
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


def masked(text: str) -> str:
    """The text without the password of any URL or connection string in it."""
    text = _PASSWORDS[0].sub(r"\1:***", text)
    return _PASSWORDS[1].sub(r"\1***", text)


def explain(error: psycopg.Error, doing: str) -> TreadleError:
    """The treadle error for a database error, with what was being done in its message."""
    code, said = error.sqlstate or "", error.diag.message_primary or _said(error)
    hint, detail = error.diag.message_hint, error.diag.message_detail
    if code.startswith("TR") and (known := translate(error)) is not None:
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
