"""What can go wrong between an agent and the server, as exceptions.

* ClientError
  + Unreachable      no answer: the server is away, or the network is
  + Unavailable      5xx: the server answers, and cannot do its work now
    - QueueFull      503: nothing was stored; come back after `retry_after` seconds
  + TooManyRequests  429: come back after `retry_after` seconds
  + Unauthenticated  401: the token is missing, unknown or too old
  + Forbidden        403: the token is not for this
  + NotFound         404
  + Conflict         409: the state of things does not allow this; `allowed` says what it does
    - ClaimLost      another claim holds the task now; drop the result
  + InvalidRequest   any other 4xx: the same request will fail again
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class ClientError(Exception):
    """Base class: catches everything that this package raises on purpose."""

    # The word of a problem document, where it says more than the status.
    word: ClassVar[str | None] = None

    def __init__(
        self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})

    @property
    def code(self) -> str | None:
        """The kind of problem, for programs: `claim-lost`."""
        return _text(self.problem.get("code"))

    @property
    def detail(self) -> str:
        """What happened, in a sentence."""
        return _text(self.problem.get("detail")) or str(self)

    @property
    def hint(self) -> str | None:
        """What to do about it."""
        return _text(self.problem.get("hint"))

    @property
    def allowed(self) -> list[str]:
        """What would have been allowed, where the server says so."""
        found = self.problem.get("allowed")
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants to be asked again."""
        found = self.problem.get("retry_after")
        return float(found) if isinstance(found, int | float) and found >= 0 else None


class Unreachable(ClientError):
    """No answer came; whether the request was carried out is not known."""


class Unavailable(ClientError):
    """The server answers, and cannot do its work now."""


class QueueFull(Unavailable):
    """The queue holds as many tasks as it may; nothing was stored."""

    word = "queue-full"


class TooManyRequests(ClientError):
    """This caller asks too often."""


class Unauthenticated(ClientError):
    """The token is missing, unknown, revoked or too old."""


class Forbidden(ClientError):
    """The token is not for this."""


class NotFound(ClientError):
    """What was named does not exist."""


class Conflict(ClientError):
    """The state of things does not allow this, or no longer."""


class ClaimLost(Conflict):
    """Another claim holds the task now, or it has ended."""

    word = "claim-lost"


class InvalidRequest(ClientError):
    """The request is wrong; the same one will fail again."""


_BY_STATUS: dict[int, type[ClientError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
}
_BY_WORD: dict[str | None, type[ClientError]] = {each.word: each for each in (QueueFull, ClaimLost)}


def error_of(status: int, problem: Mapping[str, Any]) -> ClientError:
    """The exception for an answer that is no success."""
    kind = _BY_WORD.get(_text(problem.get("code"))) or _BY_STATUS.get(status)
    if kind is None:
        kind = Unavailable if status >= 500 else InvalidRequest
    message = _text(problem.get("detail")) or f"the server answered {status}"
    return kind(message, status=status, problem=problem)


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None
