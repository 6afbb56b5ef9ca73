"""How an attempt ends without a result: the outcomes of handlers, and failures made of errors.

A handler raises or returns one of these instead of returning a value:

* RetryAfter       retry after a number of seconds, regardless of the retry policy
* FailPermanently  retries cannot help: the task goes to the dead letters
* RateLimited      the provider rejected the call; the attempt does not count
* CancelTask       the task is no longer needed
* InvalidOutput    the output is not good enough; the next attempt gets the messages

`Suspended` is not an outcome: it ends a handler whose task has released its claim to wait.
"""

import re
import traceback
from collections.abc import Iterator

from treadle.errors import (
    BudgetExceeded,
    InvalidArgument,
    ReportRequired,
    StepConflict,
    Unavailable,
    WaitExpired,
)
from treadle.json import clean_text
from treadle.models import Failure
from treadle.worker.rate_limits import RateLimit, causes, find_rate_limit

# Modules whose frames do not help the author of a handler.
_INTERNAL_MODULES = re.compile(r"(treadle\.worker|anyio|asyncio|concurrent)\b")
REPORT_MISSING = "a decision report is required: call ctx.report(summary=…, confidence=…)"


class Outcome(Exception):
    """Base class of typed outcomes."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def failure(self) -> Failure:
        """Return the outcome as an argument of `treadle.fail_tasks`."""
        return Failure(clean_text(self.reason))


class RetryAfter(Outcome):
    """Fail this attempt and retry after a number of seconds."""

    def __init__(self, seconds: float, reason: str = "the handler asked for a retry") -> None:
        super().__init__(reason)
        self.seconds = seconds

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), action="retry", retry_after_s=self.seconds)


class FailPermanently(Outcome):
    """Fail without a retry, with this failure class."""

    def __init__(self, reason: str, failure_class: str = "error") -> None:
        super().__init__(reason)
        self.failure_class = failure_class

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), self.failure_class, action="fail")


class RateLimited(Outcome):
    """A provider rejected a call because of its rate limit; retry later without using an attempt.

    Until then no worker starts a task with the same gate. `key` names one of the gates of the
    task; the default is the first one.
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
    """The output is not good enough; the next attempt gets the messages."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages) or "the output was rejected")
        self.messages = messages

    def failure(self) -> Failure:
        feedback = tuple(clean_text(each) for each in self.messages) or (self.reason,)
        return Failure(clean_text(self.reason), "invalid_output", feedback=feedback)


class Refused(Outcome):
    """The arguments or the validators do not match this code; retries cannot help."""

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), "refused", action="fail")


class Suspended(BaseException):
    """The task has released its claim to wait; its handler ends here and is called again later.

    This is not an Exception, so `except Exception` in a handler does not catch it. Do not catch it.
    """


def report_missing() -> Failure:
    """Return the failure of an attempt without the report that its type requires."""
    return Failure(REPORT_MISSING, "invalid_output", feedback=(REPORT_MISSING,))


def flatten_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group, or the error itself if it is not a group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from flatten_errors(each)
    else:
        yield error


def failure_of(error: BaseException) -> Failure:
    """Return the failure for an error: a summary line, then the traceback from the handler on."""
    if any(isinstance(each, ReportRequired) for each in flatten_errors(error)):
        return report_missing()
    summary = "; ".join(
        "".join(traceback.format_exception_only(each)).strip() for each in flatten_errors(error)
    )
    frames = error.__traceback__
    while frames is not None and _INTERNAL_MODULES.match(
        frames.tb_frame.f_globals.get("__name__", "")
    ):
        frames = frames.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    failure_class, action = _classify(error)
    message = clean_text(f"{summary}\n\n{trace}")
    limit = _rate_limit_of(error) if action is None else None
    if limit is not None:
        return Failure(message, "rate_limit", retry_after_s=limit.retry_after_s, key=limit.key)
    return Failure(message, failure_class, action)


def _rate_limit_of(error: BaseException) -> RateLimit | None:
    """Return the rate limit that the handler raised, else one found in the error or its causes."""
    for each in causes(error):
        if isinstance(each, RateLimited):
            return RateLimit(each.retry_after_s, each.key)
    return find_rate_limit(error)


def _classify(error: BaseException) -> tuple[str | None, str | None]:
    """Return the failure class if it is certain, and `fail` if retries cannot help."""
    for each in flatten_errors(error):
        if isinstance(each, StepConflict):
            return "error", "fail"
        if isinstance(each, BudgetExceeded):
            return "budget_exceeded", "fail"
        if isinstance(each, Unavailable):
            return "unavailable", None
        if isinstance(each, WaitExpired):
            return "timeout", "fail"
        if isinstance(each, InvalidArgument) and "step" in each.detail:
            return "invalid_output", "fail"
    return ("timeout" if isinstance(error, TimeoutError) else None), None
