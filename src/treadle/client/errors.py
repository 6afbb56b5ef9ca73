"""The exceptions of the client.

* ClientError
  + Unreachable      no response from the server
  + Unavailable      5xx: the server cannot process the request now
    - QueueFull      503: nothing was stored; retry after `retry_after` seconds
  + TooManyRequests  429: retry after `retry_after` seconds
  + Unauthenticated  401: the token is missing, unknown or expired
  + Forbidden        403: the token does not allow this
  + NotFound         404
  + Conflict         409: the current state does not allow this; `allowed` lists what it allows
    - ClaimLost      another claim holds the task now; drop the result
  + InvalidRequest   any other 4xx: the same request will fail again
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class ClientError(Exception):
    """Base class of all errors that this package raises on purpose."""

    # The `code` of the problem document for classes that the status does not determine.
    problem_code: ClassVar[str | None] = None

    def __init__(
        self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})

    @property
    def code(self) -> str | None:
        """The code of the problem, such as `claim-lost`."""
        return _text(self.problem.get("code"))

    @property
    def detail(self) -> str:
        """What happened."""
        return _text(self.problem.get("detail")) or str(self)

    @property
    def hint(self) -> str | None:
        """What to do about it."""
        return _text(self.problem.get("hint"))

    @property
    def allowed(self) -> list[str]:
        """What the current state allows, if the server says so."""
        found = self.problem.get("allowed")
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before the next request."""
        found = self.problem.get("retry_after")
        return float(found) if isinstance(found, int | float) and found >= 0 else None


class Unreachable(ClientError):
    """There was no response; the request may or may not have been processed."""


class Unavailable(ClientError):
    """The server cannot process the request now."""


class QueueFull(Unavailable):
    """The queue has reached its maximum size; nothing was stored."""

    problem_code = "queue-full"


class TooManyRequests(ClientError):
    """The caller exceeds its rate limit."""


class Unauthenticated(ClientError):
    """The token is missing, unknown, revoked or expired."""


class Forbidden(ClientError):
    """The token does not allow this."""


class NotFound(ClientError):
    """The object does not exist."""


class Conflict(ClientError):
    """The current state does not allow this."""


class ClaimLost(Conflict):
    """Another claim holds the task now, or the task has ended."""

    problem_code = "claim-lost"


class InvalidRequest(ClientError):
    """The request is invalid; the same request will fail again."""


_BY_STATUS: dict[int, type[ClientError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
}
_BY_CODE: dict[str | None, type[ClientError]] = {
    each.problem_code: each for each in (QueueFull, ClaimLost)
}


def error_of(status: int, problem: Mapping[str, Any]) -> ClientError:
    """Return the exception for an error response."""
    kind = _BY_CODE.get(_text(problem.get("code"))) or _BY_STATUS.get(status)
    if kind is None:
        kind = Unavailable if status >= 500 else InvalidRequest
    message = _text(problem.get("detail")) or f"the server answered {status}"
    return kind(message, status=status, problem=problem)


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None
