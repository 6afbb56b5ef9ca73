"""Rate limits of providers: recognise them in errors, and know which gates are closed.

Looked for in the error and in what caused it: class names, status codes, headers. What an error
says in words is judged in SQL, where it is judged for every other agent as well. Closed gates are
a hint for handlers: what may start is decided in the database, with every claim.
"""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import structlog
from pydantic_core import from_json

from treadle.worker.outcomes import RateLimited

_NAMES = re.compile(
    r"RateLimit|TooManyRequests|Throttl(ed|ing)|QuotaExceeded|ResourceExhausted|Overloaded"
)
_STATUS = ("status_code", "status", "code", "http_status")
_SLOW = frozenset({429, 529})
_UNAVAILABLE = 503
# Errors caused by errors, however deep libraries wrap them.
_DEEPEST = 20
log = structlog.get_logger(__name__)
CHANNEL = "slowdown"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What a provider asked for: to wait so long, at the gate of this key."""

    retry_after_s: float | None = None
    key: str | None = None


def find_rate_limit(error: BaseException) -> RateLimit | None:
    """The rate limit in an error or in one of its causes; None when there is none."""
    found = None
    for each in _causes(error):
        if isinstance(each, RateLimited):
            return RateLimit(each.retry_after_s, each.key)
        limit = _judge(each)
        if limit is not None and (found is None or found.retry_after_s is None):
            found = limit
    return found


def parse_retry_after(value: Any, now: datetime | None = None) -> float | None:
    """Seconds of a Retry-After: a number, or a date as HTTP writes it; None for anything else."""
    if isinstance(value, timedelta):
        return max(value.total_seconds(), 0.0)
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _moment(value)
        if until is None:
            return None
        return max((until - (now or datetime.now(tz=UTC))).total_seconds(), 0.0)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _moment(date: Any) -> datetime | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, those in its group, what it was raised from and what was being handled."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        if each.__cause__ is not None:
            waiting.append(each.__cause__)
        elif each.__context__ is not None and not each.__suppress_context__:
            waiting.append(each.__context__)


def _judge(error: BaseException) -> RateLimit | None:
    if isinstance(error, SystemExit):
        return None
    response = _get(error, "response")
    after = _retry_after(error, response)
    codes = {_number(_get(thing, name)) for thing in (error, response) for name in _STATUS}
    if isinstance(response, Mapping):
        # As botocore has it.
        codes.add(_number(_get(_get(response, "ResponseMetadata"), "HTTPStatusCode")))
    named = any(_NAMES.search(kind.__name__) for kind in type(error).__mro__)
    if named or codes & _SLOW or (_UNAVAILABLE in codes and after is not None):
        return RateLimit(after)
    return None


def _retry_after(error: BaseException, response: Any) -> float | None:
    """Headers first: the milliseconds are the more exact of the two."""
    for headers in (_get(response, "headers"), _get(error, "headers")):
        millis = parse_retry_after(_header(headers, "retry-after-ms"))
        if millis is not None:
            return millis / 1000
        # A date is by the clock of who wrote it, which may say what that shows.
        now = _moment(_header(headers, "date"))
        seconds = parse_retry_after(_header(headers, "retry-after"), now)
        if seconds is not None:
            return seconds
    for name in ("retry_after", "retry_after_s", "retry_after_seconds"):
        seconds = parse_retry_after(_get(error, name))
        if seconds is not None:
            return seconds
    return None


def _header(headers: Any, name: str) -> Any:
    """A header whatever its case; some mappings care about it."""
    if isinstance(headers, Mapping):
        for key, value in headers.items():
            if isinstance(key, str) and key.lower() == name:
                return value
        return None
    get = _get(headers, "get")
    return get(name) if callable(get) else None


def _get(thing: Any, name: str) -> Any:
    """An attribute or item of something foreign, which may do anything when it is asked."""
    try:
        if isinstance(thing, Mapping):
            return thing.get(name)
        return getattr(thing, name, None)
    except Exception:
        return None


def _number(value: Any) -> int | None:
    """A status code, also as text or as an enum."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        return int(value)
    return None


class ClosedGates:
    """Gates and until when they are closed."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[datetime, float]] = {}

    def record(self, payload: str) -> None:
        """Remember a notification `{"key": …, "until": …, "in_s": …}`."""
        try:
            told = from_json(payload)
            key, until = str(told["key"]), datetime.fromisoformat(told["until"])
            left_s = float(told["in_s"])
        except (ValueError, TypeError, KeyError) as error:
            log.warning("slowdown.not_understood", payload=payload[:200], error=str(error))
            return
        now = time.monotonic()
        self._until = {name: each for name, each in self._until.items() if each[1] > now}
        self._until[key] = until, now + left_s
        log.warning("slowdown", key=key, until=until.isoformat(), seconds=round(left_s, 1))

    def until(self, keys: Iterable[str]) -> datetime | None:
        """Until when the last of these gates is closed; None when all are open."""
        now = time.monotonic()
        found = [self._until[key] for key in keys if key in self._until]
        return max((until for until, ends in found if ends > now), default=None)
