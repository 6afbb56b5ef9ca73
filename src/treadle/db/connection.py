"""Sync connections for commands, and database URLs.

They are for migrations and checks. Long-running processes use a pool.
"""

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from treadle.errors import ConfigurationError, TreadleError, Unavailable

CONNECT_TIMEOUT_S = 10
OLDEST_SERVER = 150000
# A dead peer is noticed within 25 seconds. Parameters of the URL take precedence.
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


def connect_sync(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Open a sync autocommit connection; raise Unavailable if it fails or times out."""
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
        message = mask_password(_one_line(error))
        if options.get("password"):
            message = message.replace(str(options["password"]), "***")
        raise Unavailable(
            f"cannot connect to {_target(options)}: {message}",
            hint="Check that the server runs, and the host, port, database, user and password.",
        ) from None
    try:
        refuse_old_server(conn.info.server_version)
    except TreadleError:
        conn.close()
        raise
    return conn


def parsed(url: str) -> dict[str, Any]:
    """Parse a database URL; raise ConfigurationError, without passwords, if it is invalid."""
    try:
        return {**conninfo_to_dict(url)}
    except psycopg.ProgrammingError as error:
        # libpq quotes the part that it could not parse, which may be a password.
        message = re.sub(r'[\s:]*"(?![a-z_]+")[^"]*"', "", _one_line(error))
        if "://" not in url and "=" not in url:
            message = "it does not start with postgresql://"
        raise ConfigurationError(
            f"the database URL is invalid: {mask_password(message)}",
            hint="Write it as postgresql://user@host:5432/name, with the password after user "
            "and a colon, or in PGPASSWORD.",
        ) from None


def refuse_old_server(version: int) -> None:
    """Raise ConfigurationError if the server is too old."""
    if version < OLDEST_SERVER:
        raise ConfigurationError(
            f"the server is PostgreSQL {version // 10000}; treadle needs 15 or newer",
            hint="Upgrade the server, or use the embedded one: treadle dev",
        )


def mask_password(text: str) -> str:
    """Replace the passwords of URLs and connection strings in a text."""
    text = _PASSWORDS[0].sub(r"\1:***", text)
    return _PASSWORDS[1].sub(r"\1***", text)


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _target(options: dict[str, Any]) -> str:
    where = options.get("host") or options.get("hostaddr") or "the default server"
    if options.get("port"):
        where = f"{where}:{options['port']}"
    return f"database {options.get('dbname') or '(default)'} at {where}"
