"""What an error makes of an attempt: its class, its message, and whether a retry can help."""

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
from treadle.worker.outcomes import Outcome
from treadle.worker.rate_limits import find_rate_limit

# Modules whose frames tell the author of a handler nothing.
_PLUMBING = re.compile(r"(treadle\.worker|anyio|asyncio|concurrent)\b")
REPORT_MISSING = "a decision report is required: call ctx.report(summary=…, confidence=…)"


class Refused(Outcome):
    """The arguments or the validators do not fit the code: no retry can help."""

    def failure(self) -> Failure:
        return Failure(clean_text(self.reason), "refused", action="fail")


def report_missing() -> Failure:
    """The failure of an attempt that ends without the report that its type requires."""
    return Failure(REPORT_MISSING, "invalid_output", feedback=(REPORT_MISSING,))


def flatten_errors(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, or the one that it is."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from flatten_errors(each)
    else:
        yield error


def failure_of(error: BaseException) -> Failure:
    """What went wrong in the first line, then the traceback from the handler on."""
    if any(isinstance(each, ReportRequired) for each in flatten_errors(error)):
        return report_missing()
    words = [
        "".join(traceback.format_exception_only(each)).strip() for each in flatten_errors(error)
    ]
    summary = "; ".join(words)
    trace = error.__traceback__
    while trace is not None and _PLUMBING.match(trace.tb_frame.f_globals.get("__name__", "")):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
    kind, action = _kind(error)
    told = clean_text(f"{summary}\n\n{text}")
    limit = find_rate_limit(error) if action is None else None
    if limit is not None:
        return Failure(told, "rate_limit", retry_after_s=limit.retry_after_s, key=limit.key)
    return Failure(told, kind, action)


def _kind(error: BaseException) -> tuple[str | None, str | None]:
    """The class of a failure where it is certain, and `fail` where no retry can help."""
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
