"""Every error that treadle raises on purpose, with its SQLSTATE, HTTP status and exit code.

* TreadleError
  + InvalidArgument      TR001  the caller is wrong; do not retry
    - TooLarge           TR002  a payload exceeds the size limit
    - SecretRefused      TR111  the payload seems to contain a credential
    - KeyReused          TR112  the Idempotency-Key was used for another request
  + Conflict
    - ClaimLost          TR101  another worker owns the task now; drop the result
    - IllegalTransition  TR102  the task is not in a state that allows this
    - CycleRefused       TR103  tasks would wait for each other
    - StepConflict       TR104  a step was saved with another input
    - BudgetExceeded     TR106  a budget has not enough left
    - ReportRequired     TR107  the type requires a decision report
    - AlreadyTaken       TR108  the agent has another item in progress
    - RequestInFlight    TR113  the same request is being processed
  + QueueFull            TR105  the queue has reached its maximum size
  + NotFound
    - TaskNotFound       TR201
    - UnknownQueue       TR202
    - UnknownType        TR203
    - UnknownAgent       TR204
    - DagNotFound        TR205
    - WaitNotFound       TR206
    - StepNotFound       TR207
    - UnknownProject     TR208
    - UnknownGate        TR209
    - UnknownBudget      TR210
    - UnknownSchedule    TR211
    - UnknownTrigger     TR212
    - UnknownWebhook     TR213
    - ArtifactNotFound   TR214
    - WorkItemNotFound   TR215
    - UnknownToken       TR217
  + SchemaError
    - SchemaMissing      TR301  the database has no treadle schema
    - SchemaTooNew       TR302  the schema is newer than this code
    - SchemaOutdated     TR303  the schema is older than this code
    - MigrationChanged   TR304  an applied migration was edited
    - RolesMissing       TR305  the treadle roles do not exist and cannot be created
  + Forbidden            42501  the login lacks a treadle role
  + Unauthenticated      TR401  no token, or an invalid one
  + TooManyRequests      TR429  the caller exceeds its rate limit; wait
  + Unavailable          -      a connection or lock problem; retry with backoff
  + DatabaseError        -      PostgreSQL raised an error that treadle does not know
  + StoreError           -      the store of artifacts cannot be reached, or raised an error
  + ResultTimeout        -      the awaited task did not end in time
  + TaskFailed           -      the awaited task was dead-lettered or cancelled
  + WaitExpired          -      nobody answered in time
  + ConfigurationError   -      a setting or an application path is wrong
    - MissingExtra       -      an optional dependency is not installed

One class has one SQLSTATE, one HTTP status with its problem code, and one exit code.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from treadle.masking import mask_detail, mask_text


class TreadleError(Exception):
    """Base class of all errors that treadle raises on purpose."""

    sqlstate: ClassVar[str | None] = None
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    # The code of HTTP problems; the default is the name of the class in kebab case.
    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None, **detail: object) -> None:
        # Errors reach clients and logs, so they must not contain credentials.
        super().__init__(mask_text(message))
        self.hint = None if hint is None else mask_text(hint)
        if self.hint is not None:
            # A traceback shows notes.
            self.add_note(f"hint: {self.hint}")
        self.detail: dict[str, object] = {
            name: mask_detail(value) for name, value in detail.items()
        }


def by_sqlstate() -> dict[str, type[TreadleError]]:
    """Map each SQLSTATE to its class."""
    found: dict[str, type[TreadleError]] = {}
    waiting = [TreadleError]
    while waiting:
        cls = waiting.pop()
        waiting.extend(cls.__subclasses__())
        if cls.sqlstate is not None:
            found[cls.sqlstate] = cls
    return found


class InvalidArgument(TreadleError):
    """An argument is wrong; the same call will fail again."""

    sqlstate = "TR001"
    exit_code = 2
    http_status = 422


class TooLarge(InvalidArgument):
    """A payload exceeds the size limit."""

    sqlstate = "TR002"
    http_status = 413


class Conflict(TreadleError):
    """The current state does not allow this."""

    exit_code = 4
    http_status = 409


class ClaimLost(Conflict):
    """The claim token is no longer the one of the task."""

    sqlstate = "TR101"


class IllegalTransition(Conflict):
    """The task is in a state from which this is not allowed."""

    sqlstate = "TR102"


class CycleRefused(Conflict):
    """The dependencies would form a cycle."""

    sqlstate = "TR103"
    code = "cycle"


class StepConflict(Conflict):
    """A step of this name was saved with another input."""

    sqlstate = "TR104"


class QueueFull(TreadleError):
    """The queue has reached its maximum size; nothing was stored."""

    sqlstate = "TR105"
    exit_code = 5
    http_status = 503


class BudgetExceeded(Conflict):
    """A budget has not enough left."""

    sqlstate = "TR106"


class ReportRequired(Conflict):
    """The type requires a decision report, and there is none."""

    sqlstate = "TR107"


class AlreadyTaken(Conflict):
    """The agent has another item in progress."""

    sqlstate = "TR108"


class SecretRefused(InvalidArgument):
    """The data to be stored seems to contain a credential."""

    sqlstate = "TR111"


class KeyReused(InvalidArgument):
    """The Idempotency-Key was already used for another request."""

    sqlstate = "TR112"


class RequestInFlight(Conflict):
    """A request with the same Idempotency-Key is being processed."""

    sqlstate = "TR113"


class ResultTimeout(TreadleError):
    """The awaited task did not end in time; it is still active."""

    exit_code = 7
    http_status = 504


class TaskFailed(TreadleError):
    """The awaited task ended without a result."""

    exit_code = 8
    http_status = 409


class WaitExpired(TreadleError):
    """Nobody answered in time, and the wait fails on expiry."""

    exit_code = 7
    http_status = 504


class NotFound(TreadleError):
    """The object does not exist."""

    exit_code = 3
    http_status = 404


class TaskNotFound(NotFound):
    """No task has this id."""

    sqlstate = "TR201"


class UnknownQueue(NotFound):
    """No queue has this name."""

    sqlstate = "TR202"


class UnknownType(NotFound):
    """No task type has this name."""

    sqlstate = "TR203"


class UnknownAgent(NotFound):
    """No agent has registered under this id."""

    sqlstate = "TR204"


class DagNotFound(NotFound):
    """No DAG has this id."""

    sqlstate = "TR205"


class WaitNotFound(NotFound):
    """No wait has this id."""

    sqlstate = "TR206"


class StepNotFound(NotFound):
    """The task has no step of this name."""

    sqlstate = "TR207"


class UnknownProject(NotFound):
    """No project has this name."""

    sqlstate = "TR208"


class UnknownGate(NotFound):
    """No gate has this key."""

    sqlstate = "TR209"


class UnknownBudget(NotFound):
    """There is no such budget."""

    sqlstate = "TR210"


class UnknownSchedule(NotFound):
    """No schedule has this name."""

    sqlstate = "TR211"


class UnknownTrigger(NotFound):
    """No trigger has this name."""

    sqlstate = "TR212"


class UnknownWebhook(NotFound):
    """No webhook has this name."""

    sqlstate = "TR213"


class ArtifactNotFound(NotFound):
    """No artifact has this id or name."""

    sqlstate = "TR214"


class WorkItemNotFound(NotFound):
    """No work item has this id."""

    sqlstate = "TR215"


class UnknownToken(NotFound):
    """No token has this id or name."""

    sqlstate = "TR217"


class SchemaError(TreadleError):
    """The schema in the database does not match this code."""

    http_status = 503
    code = "schema"


class SchemaMissing(SchemaError):
    """The database has no treadle schema."""

    sqlstate = "TR301"


class SchemaTooNew(SchemaError):
    """The schema was created by a newer version of treadle."""

    sqlstate = "TR302"


class SchemaOutdated(SchemaError):
    """The schema was created by an older version of treadle."""

    sqlstate = "TR303"


class MigrationChanged(SchemaError):
    """An applied migration differs from its file."""

    sqlstate = "TR304"


class RolesMissing(SchemaError):
    """The treadle roles are missing, and this login may not create them."""

    sqlstate = "TR305"


class Forbidden(TreadleError):
    """The login may not do this."""

    sqlstate = "42501"
    http_status = 403


class Unauthenticated(TreadleError):
    """There is no token, or it is invalid."""

    sqlstate = "TR401"
    http_status = 401


class TooManyRequests(TreadleError):
    """The caller exceeds its rate limit; `retry_after_s` is the time to wait."""

    sqlstate = "TR429"
    http_status = 429


class Unavailable(TreadleError):
    """The database cannot be reached or did not respond in time."""

    exit_code = 6
    http_status = 503


class DatabaseError(TreadleError):
    """PostgreSQL raised an error that treadle does not know."""

    code = "database"


class StoreError(TreadleError):
    """The store of artifacts cannot be reached, or raised an error."""

    exit_code = 6
    http_status = 503
    code = "store"


class ConfigurationError(TreadleError):
    """A setting, a file or an application path is wrong."""

    exit_code = 2
    code = "configuration"


class MissingExtra(ConfigurationError):
    """A required optional dependency is not installed."""


@contextmanager
def extra(name: str, problem: str, instead: str = "") -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails.

    `with extra("cron", "cron lines need cronsim"): …`
    """
    try:
        yield
    except ImportError:
        raise MissingExtra(problem, hint=f"pip install 'treadle[{name}]'{instead}") from None
