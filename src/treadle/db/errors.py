"""Translate the errors of psycopg by SQLSTATE, and detect lost connections."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from treadle.errors import (
    ClaimLost,
    DatabaseError,
    Forbidden,
    InvalidArgument,
    SchemaError,
    SchemaMissing,
    TreadleError,
    Unavailable,
    by_sqlstate,
)

_BY_SQLSTATE = by_sqlstate()
RETRY_AT_ONCE = frozenset({"40001", "40P01", "55P03"})
# A prepared statement is missing or exists twice: a pooler has switched the server connection.
_PREPARED_STATEMENTS = frozenset({"26000", "42P05"})
# Temporary problems of connections, resources and administration. 25006: the server is a standby.
_TEMPORARY_CLASSES = ("08", "53", "57", "58")
_TEMPORARY = frozenset({"25006", "25P02"}) | RETRY_AT_ONCE
_NO_SCHEMA = frozenset({"3F000", "42P01", "42883"})
# The server ended the session, or is a standby.
_NOTHING_DONE = frozenset({"25006", "25P03", "57P01", "57P03", "57P05"})
_ENDED = _NOTHING_DONE | {"57P02"}


class CallTimeout(psycopg.OperationalError):
    """The server did not respond before the timeout; the connection is closed."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise treadle's errors instead of psycopg's."""
    try:
        yield
    except psycopg.Error as error:
        raise to_treadle_error(error) from error


_CHECK_HINT = "Check that PostgreSQL runs and that the URL is right: treadle doctor"


def to_treadle_error(error: psycopg.Error) -> TreadleError:
    """Return the treadle error for a psycopg error."""
    state, diag = error.sqlstate, error.diag
    if state == "42501":
        return Forbidden(
            diag.message_primary or "permission denied",
            hint="Grant a treadle role to the login, for example: grant treadle_worker to my_login",
        )
    if state in _BY_SQLSTATE:
        return _BY_SQLSTATE[state](
            diag.message_primary or str(error), hint=diag.message_hint or None, **_detail(diag)
        )
    if state in _NO_SCHEMA and "treadle" in (diag.message_primary or ""):
        return SchemaMissing(
            f"this database has no treadle schema: {diag.message_primary}",
            hint="Create it: treadle db migrate",
        )
    if state is not None and state.startswith("22"):
        return InvalidArgument(diag.message_primary or str(error), sqlstate=state)
    if state == "54001":
        return InvalidArgument("the payload is nested too deep", hint="Flatten it.")
    if state in _PREPARED_STATEMENTS:
        return Unavailable(
            diag.message_primary or "a prepared statement belongs to another server connection",
            hint="Behind a transaction pooler, set TREADLE_PREPARE=false",
            sqlstate=state,
        )
    if state == "57014":
        return Unavailable(
            f"the database did not finish in time: {diag.message_primary}",
            hint="Nothing was changed. Try again later, or request less at once.",
            sqlstate=state,
        )
    if isinstance(error, CallTimeout):
        return Unavailable(f"the database gave {error}", hint=_CHECK_HINT)
    temporary = state is None or state in _TEMPORARY or state.startswith(_TEMPORARY_CLASSES)
    if temporary and isinstance(error, (psycopg.OperationalError, psycopg.InternalError)):
        text = (diag.message_primary or str(error)).strip()
        return Unavailable(f"the database is unavailable: {text}", hint=_CHECK_HINT, sqlstate=state)
    if isinstance(error, psycopg.DataError):
        # The other lines may contain the values that were sent.
        return InvalidArgument(str(error).strip().partition("\n")[0])
    return DatabaseError(diag.message_primary or str(error).strip(), sqlstate=state)


def refusal(problem: Mapping[str, Any]) -> TreadleError:
    """Return the error of a refusal that a function returned in its column `problem`."""
    return _BY_SQLSTATE[problem["code"]](
        problem["message"], hint=problem["hint"], **problem["detail"]
    )


def claim_lost(task_id: UUID) -> ClaimLost:
    """Return the error for a claim that was superseded."""
    return ClaimLost(
        f"the claim on task {task_id} is no longer valid",
        hint="Discard the result: another agent has the task, or it was cancelled or has ended.",
        task_id=str(task_id),
    )


def _detail(diag: psycopg.errors.Diagnostic) -> dict[str, Any]:
    try:
        found = json.loads(diag.message_detail or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def describe_error(error: psycopg.Error, doing: str) -> TreadleError:
    """Return the treadle error for a database error; `doing` describes the operation."""
    code = error.sqlstate or ""
    message = error.diag.message_primary or " ".join(str(error).split())
    hint, detail = error.diag.message_hint, error.diag.message_detail
    if code.startswith("TR") and (known := to_treadle_error(error)) is not None:
        return known
    if code in ("55P03", "40P01"):
        return Unavailable(
            f"{doing}: timed out waiting for a lock",
            hint="This step changed nothing. Find the holder in pg_locks and pg_stat_activity,"
            " then run the command again, perhaps with a longer --lock-timeout.",
        )
    if not code or code.startswith(("08", "53", "57P")):
        return Unavailable(
            f"{doing}: {message}",
            hint="Run the command again: finished steps stay, the last one was rolled back.",
        )
    if code == "42501":
        return Forbidden(
            f"{doing}: {message}",
            hint="Use a login that is a member of treadle_owner and may create in this database.",
        )
    if code == "2BP01":
        return SchemaError(
            f"{doing}: {message}: {detail}",
            hint="Drop the dependent objects, migrate, then create them again.",
        )
    return SchemaError(f"{doing}: {message}" + (f" ({detail})" if detail else ""), hint=hint)


def may_have_happened(error: BaseException | None) -> bool:
    """Return whether the server may have executed a call that failed."""
    if isinstance(error, CallTimeout):
        # A cancelled statement was rolled back.
        return not isinstance(error.__cause__, psycopg.errors.QueryCanceled)
    state = getattr(error, "sqlstate", None)
    return is_lost(error) and state not in _NOTHING_DONE


def is_lost(error: BaseException | None) -> bool:
    """Return whether an error means that its connection is lost or read-only.

    The same call may succeed on a new connection. Errors of a pool without a free connection do
    not count.
    """
    if not isinstance(error, psycopg.Error) or isinstance(
        error, (PoolTimeout, PoolClosed, TooManyRequests)
    ):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state in _ENDED or state.startswith("08")
