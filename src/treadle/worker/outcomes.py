"""What a handler can say besides returning a value: raise one of these, or return it.

* RetryAfter   try again after so many seconds, whatever the policy says
* FailForGood  no retry can help: straight to the dead letters
* RateLimited  the provider said slow down; no attempt is burnt
* CancelTask   the task is not wanted any more
* InvalidOutput  what came out is not good enough; the next attempt is told why

`Suspended` is no outcome: it ends a handler whose task has given up its claim to wait.
"""

from treadle.json import clean_text
from treadle.models import Failure


class Outcome(Exception):
    """Base class of typed outcomes."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def failure(self) -> Failure:
        """The outcome as `treadle.fail_tasks` takes it."""
        return Failure(clean_text(self.reason))


class RetryAfter(Outcome):
    """Fail this attempt and try again after so many seconds."""

    def __init__(self, seconds: float, reason: str = "retry asked for") -> None:
        super().__init__(reason)
        self.seconds = seconds

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), action="retry", retry_after_s=self.seconds)


class FailForGood(Outcome):
    """Fail without a retry; `failure_class` says of what kind."""

    def __init__(self, reason: str, failure_class: str = "error") -> None:
        super().__init__(reason)
        self.failure_class = failure_class

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), self.failure_class, action="fail")


class RateLimited(Outcome):
    """The provider said slow down; try again later without burning an attempt.

    No task behind the gate starts until then, on any worker: `key` is one of the task's gates, the
    first of them unless given.
    """

    def __init__(
        self,
        retry_after_s: float | None = None,
        reason: str = "rate limited",
        *,
        key: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        self.key = key

    def failure(self) -> Failure:
        return Failure(
            clean_text(self.reason),
            "rate_limit",
            retry_after_s=self.retry_after_s,
            key=None if self.key is None else clean_text(self.key),
        )


class CancelTask(Outcome):
    """End the task as cancelled."""

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason or "cancelled by its handler"), action="cancel")


class InvalidOutput(Outcome):
    """What came out is not good enough: each message is handed to the next attempt."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages) or "the output was refused")
        self.messages = messages

    def failure(self) -> Failure:
        told = tuple(clean_text(each) for each in self.messages) or (self.reason,)
        return Failure(clean_text(self.reason), "invalid_output", feedback=told)


class Suspended(BaseException):
    """The task waits, and has given up its claim: the handler ends here and is called again later.

    Not an Exception, so that `except Exception` in a handler does not catch it. Let it through.
    """
