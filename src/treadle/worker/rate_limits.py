"""Rate limits of providers: detect them in errors, and remember which gates are closed.

An error and its causes are searched for class names, status codes and headers. SQL searches the
text of the message, for all agents alike. Closed gates are a hint for handlers: the database
decides with every claim which tasks may start.
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

_NAMES = re.compile(
    r"RateLimit|TooManyRequests|Throttl(ed|ing)|QuotaExceeded|ResourceExhausted|Overloaded"
)
_STATUS = ("status_code", "status", "code", "http_status")
_SLOW = frozenset({429, 529})
_UNAVAILABLE = 503
# The maximum number of errors in a chain of causes that are searched.
_MAX_CAUSES = 20
log = structlog.get_logger(__name__)
CHANNEL = "treadle_slowdown"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The wait that a provider asked for, and the key of the gate."""

    retry_after_s: float | None = None
    key: str | None = None


def find_rate_limit(error: BaseException) -> RateLimit | None:
    """Return the rate limit in an error or in one of its causes; None if there is none."""
    found = None
    for each in causes(error):
        limit = _detect(each)
        if limit is not None and (found is None or found.retry_after_s is None):
            found = limit
    return found


def parse_retry_after(value: Any, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After value, which is a number or an HTTP date."""
    if isinstance(value, timedelta):
        return max(value.total_seconds(), 0.0)
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _parse_date(value)
        if until is None:
            return None
        return max((until - (now or datetime.now(tz=UTC))).total_seconds(), 0.0)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _parse_date(date: Any) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the errors of its group, and its causes and contexts."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MAX_CAUSES:
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


def _detect(error: BaseException) -> RateLimit | None:
    if isinstance(error, SystemExit):
        return None
    response = _get(error, "response")
    after = _retry_after(error, response)
    codes = {_number(_get(thing, name)) for thing in (error, response) for name in _STATUS}
    if isinstance(response, Mapping):
        # The response of botocore.
        codes.add(_number(_get(_get(response, "ResponseMetadata"), "HTTPStatusCode")))
    named = any(_NAMES.search(kind.__name__) for kind in type(error).__mro__)
    if named or codes & _SLOW or (_UNAVAILABLE in codes and after is not None):
        return RateLimit(after)
    return None


def _retry_after(error: BaseException, response: Any) -> float | None:
    """Return the wait in seconds: from headers first, where milliseconds are more exact."""
    for headers in (_get(response, "headers"), _get(error, "headers")):
        millis = parse_retry_after(_header(headers, "retry-after-ms"))
        if millis is not None:
            return millis / 1000
        # A date refers to the clock of the sender, which its Date header shows.
        now = _parse_date(_header(headers, "date"))
        seconds = parse_retry_after(_header(headers, "retry-after"), now)
        if seconds is not None:
            return seconds
    for name in ("retry_after", "retry_after_s", "retry_after_seconds"):
        seconds = parse_retry_after(_get(error, name))
        if seconds is not None:
            return seconds
    return None


def _header(headers: Any, name: str) -> Any:
    """Return a header regardless of its case; some mappings are case-sensitive."""
    if isinstance(headers, Mapping):
        for key, value in headers.items():
            if isinstance(key, str) and key.lower() == name:
                return value
        return None
    get = _get(headers, "get")
    return get(name) if callable(get) else None


def _get(thing: Any, name: str) -> Any:
    """Return an attribute or item of an unknown object, whose accessors may raise anything."""
    try:
        if isinstance(thing, Mapping):
            return thing.get(name)
        return getattr(thing, name, None)
    except Exception:
        return None


def _number(value: Any) -> int | None:
    """Return a status code, which may be an int, an enum or text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        return int(value)
    return None


class ClosedGates:
    """The gates that are closed, and until when."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[datetime, float]] = {}

    def record(self, payload: str) -> None:
        """Record a notification `{"key": …, "until": …, "in_s": …}`."""
        try:
            document = from_json(payload)
            key, until = str(document["key"]), datetime.fromisoformat(document["until"])
            left_s = float(document["in_s"])
        except (ValueError, TypeError, KeyError) as error:
            log.warning("gate.notification_invalid", payload=payload[:200], error=str(error))
            return
        now = time.monotonic()
        self._until = {name: each for name, each in self._until.items() if each[1] > now}
        self._until[key] = until, now + left_s
        log.warning("gate.closed", key=key, until=until.isoformat(), seconds=round(left_s, 1))

    def until(self, keys: Iterable[str]) -> datetime | None:
        """Return until when the last of these gates is closed; None if all are open."""
        now = time.monotonic()
        found = [self._until[key] for key in keys if key in self._until]
        return max((until for until, ends in found if ends > now), default=None)
