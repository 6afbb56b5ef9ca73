"""What a caller did wrong, or came too late for."""

from treadle.errors.base import TreadleError


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
