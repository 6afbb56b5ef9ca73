"""Turn what psycopg raises into the errors of treadle.

The SQLSTATE decides.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from treadle.db.connection import CallTimeout
from treadle.errors import (
    DatabaseError,
    Forbidden,
    InvalidArgument,
    SchemaMissing,
    TreadleError,
    Unavailable,
    by_sqlstate,
)

_BY_SQLSTATE = by_sqlstate()
RETRY_AT_ONCE = frozenset({"40001", "40P01", "55P03"})
# A prepared statement of this connection that another server connection has, or has not.
_LOST_PLANS = frozenset({"26000", "42P05"})
# Connection, resource and operator trouble: it passes. 25006 is a primary that became a standby.
_PASSING_CLASSES = ("08", "53", "57", "58")
_PASSING = frozenset({"25006", "25P02"}) | RETRY_AT_ONCE
_NO_SCHEMA = frozenset({"3F000", "42P01", "42883"})


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise treadle's errors instead of psycopg's."""
    try:
        yield
    except psycopg.Error as error:
        raise to_treadle_error(error) from error
    except (PoolTimeout, PoolClosed, TooManyRequests) as error:
        raise Unavailable(f"no database connection: {error}", hint=_ANSWER) from error


_ANSWER = "Is PostgreSQL up and the URL right? Check with: treadle doctor"


def to_treadle_error(error: psycopg.Error) -> TreadleError:
    """The treadle error for a psycopg error."""
    state, diag = error.sqlstate, error.diag
    if state == "42501":
        return Forbidden(
            diag.message_primary or "permission denied",
            hint="Grant the login a role of treadle, for example: grant treadle_worker to you",
        )
    if state in _BY_SQLSTATE:
        return _BY_SQLSTATE[state](
            diag.message_primary or str(error), hint=diag.message_hint or None, **_detail(diag)
        )
    if state in _NO_SCHEMA and "treadle" in (diag.message_primary or ""):
        return SchemaMissing(
            f"this database has no treadle schema: {diag.message_primary}",
            hint="Make it with: treadle db migrate",
        )
    if state is not None and state.startswith("22"):
        return InvalidArgument(diag.message_primary or str(error), sqlstate=state)
    if state == "54001":
        return InvalidArgument("the payload is nested too deep", hint="Flatten it.")
    if state in _LOST_PLANS:
        return Unavailable(
            diag.message_primary or "a prepared statement is not where it was made",
            hint="Behind a transaction pooler set TREADLE_PREPARE=false",
            sqlstate=state,
        )
    if state == "57014":
        return Unavailable(
            f"the database did not finish this in time: {diag.message_primary}",
            hint="Nothing was changed. Try again later, or ask for less at once.",
            sqlstate=state,
        )
    if isinstance(error, CallTimeout):
        return Unavailable(f"the database gave {error}", hint=_ANSWER)
    passing = state is None or state in _PASSING or state.startswith(_PASSING_CLASSES)
    if passing and isinstance(error, (psycopg.OperationalError, psycopg.InternalError)):
        text = (diag.message_primary or str(error)).strip()
        return Unavailable(f"database trouble: {text}", hint=_ANSWER, sqlstate=state)
    if isinstance(error, psycopg.DataError):
        # The lines after the first may repeat what was sent.
        return InvalidArgument(str(error).strip().partition("\n")[0])
    return DatabaseError(diag.message_primary or str(error).strip(), sqlstate=state)


def _detail(diag: psycopg.errors.Diagnostic) -> dict[str, Any]:
    try:
        found = json.loads(diag.message_detail or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
