"""Every error treadle raises on purpose, and how each face shows it.

* TreadleError
  + InvalidArgument      TR001  the caller is wrong; do not retry
    - TooLarge           TR002  a payload over the size cap
    - SecretRefused      TR111  the payload holds what looks like a credential
    - KeyReused          TR112  the Idempotency-Key was sent with another request
  + Conflict
    - ClaimLost          TR101  another worker owns the task now; drop the result
    - IllegalTransition  TR102  the task is not in a state that allows this
    - CycleRefused       TR103  tasks would wait for each other
    - StepConflict       TR104  a step was saved with another input
    - BudgetExceeded     TR106  a budget has no room for this
    - ReportRequired     TR107  the type wants a decision report
    - AlreadyTaken       TR108  the agent has other work
    - RequestInFlight    TR113  the same request is being answered now
  + QueueFull            TR105  the queue holds as many tasks as it may
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
    - RolesMissing       TR305  the treadle roles do not exist and may not be made
  + Forbidden            42501  the login lacks a role of treadle
  + Unauthenticated      TR401  no token, or none that is valid
  + TooManyRequests      TR429  more requests than the caller may make; wait
  + Unavailable          -      connection or lock trouble; retry with backoff
  + DatabaseError        -      PostgreSQL refused it for a reason that is not ours
  + StoreError           -      the store of artifacts cannot be reached, or refused
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
    """Base class: catches everything treadle raises on purpose."""

    sqlstate: ClassVar[str | None] = None
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    # For programs: the name of the class in kebab case, where it says nothing else.
    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None, **detail: object) -> None:
        # Errors reach clients and logs.
        super().__init__(mask_text(message))
        self.hint = None if hint is None else mask_text(hint)
        self.detail: dict[str, object] = {
            name: mask_detail(value) for name, value in detail.items()
        }


def by_sqlstate() -> dict[str, type[TreadleError]]:
    """Map each SQLSTATE of the taxonomy to its class."""
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
    """A payload is over the size cap."""

    sqlstate = "TR002"
    http_status = 413


class Conflict(TreadleError):
    """The state of things does not allow this, or no longer."""

    exit_code = 4
    http_status = 409


class ClaimLost(Conflict):
    """The claim shown is no longer the one on the row."""

    sqlstate = "TR101"


class IllegalTransition(Conflict):
    """The task is in a state from which this is not allowed."""

    sqlstate = "TR102"


class CycleRefused(Conflict):
    """These dependencies would make tasks wait for each other for ever."""

    sqlstate = "TR103"
    code = "cycle"


class StepConflict(Conflict):
    """A step of this name was saved with another input."""

    sqlstate = "TR104"


class QueueFull(TreadleError):
    """The queue holds as many tasks as it may; nothing was stored."""

    sqlstate = "TR105"
    exit_code = 5
    http_status = 503


class BudgetExceeded(Conflict):
    """A budget has no room for what was asked."""

    sqlstate = "TR106"


class ReportRequired(Conflict):
    """The type wants a decision report, and there is none."""

    sqlstate = "TR107"


class AlreadyTaken(Conflict):
    """The agent has another item in progress."""

    sqlstate = "TR108"


class SecretRefused(InvalidArgument):
    """What was to be stored looks as if a credential were in it."""

    sqlstate = "TR111"


class KeyReused(InvalidArgument):
    """The Idempotency-Key was sent with another request before."""

    sqlstate = "TR112"


class RequestInFlight(Conflict):
    """A request with the same Idempotency-Key is being answered now."""

    sqlstate = "TR113"


class ResultTimeout(TreadleError):
    """The awaited task did not end in time; it goes on."""

    exit_code = 7
    http_status = 504


class TaskFailed(TreadleError):
    """The awaited task ended without a result."""

    exit_code = 8
    http_status = 409


class WaitExpired(TreadleError):
    """Nobody answered in time, and the question said to fail then."""

    exit_code = 7
    http_status = 504


class NotFound(TreadleError):
    """What was named does not exist."""

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
    """The schema in the database and this code do not fit."""

    http_status = 503
    code = "schema"


class SchemaMissing(SchemaError):
    """The database has no treadle schema."""

    sqlstate = "TR301"


class SchemaTooNew(SchemaError):
    """The schema was made by a newer treadle."""

    sqlstate = "TR302"


class SchemaOutdated(SchemaError):
    """The schema was made by an older treadle."""

    sqlstate = "TR303"


class MigrationChanged(SchemaError):
    """A migration that is applied differs from its file."""

    sqlstate = "TR304"


class RolesMissing(SchemaError):
    """The treadle roles are missing and this login may not create them."""

    sqlstate = "TR305"


class Forbidden(TreadleError):
    """The login may not do this."""

    sqlstate = "42501"
    http_status = 403


class Unauthenticated(TreadleError):
    """There is no token, or none that is valid."""

    sqlstate = "TR401"
    http_status = 401


class TooManyRequests(TreadleError):
    """The caller makes more requests than it may; `retry_after_s` says when to come again."""

    sqlstate = "TR429"
    http_status = 429


class Unavailable(TreadleError):
    """The database cannot be reached or did not answer in time."""

    exit_code = 6
    http_status = 503


class DatabaseError(TreadleError):
    """PostgreSQL refused a call for a reason that treadle does not know."""

    code = "database"


class StoreError(TreadleError):
    """The store of artifacts cannot be reached, or refused."""

    exit_code = 6
    http_status = 503
    code = "store"


class ConfigurationError(TreadleError):
    """A setting, a file or an application path is wrong."""

    exit_code = 2
    code = "configuration"


class MissingExtra(ConfigurationError):
    """An optional dependency is needed and not installed."""


@contextmanager
def extra(name: str, problem: str, instead: str = "") -> Iterator[None]:
    """Around imports that need an extra: `with extra("cron", "cron lines need cronsim"): …`."""
    try:
        yield
    except ImportError:
        raise MissingExtra(problem, hint=f"pip install 'treadle[{name}]'{instead}") from None
