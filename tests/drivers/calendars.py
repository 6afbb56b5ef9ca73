"""Cron times computed the slow way: check the wall clock in every minute.

It shares no code with treadle.cron, only the rule: a line with a fixed minute and hour means
wall-clock times, one with a star there follows elapsed time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]


def minutes_of(line: str, timezone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The times after `begin` up to `end`, in order."""
    minute, hour, *_ = line.split()
    fields = [_values(part, *limits) for part, limits in zip(line.split(), RANGES, strict=True)]
    stars = [part.startswith("*") for part in line.split()]
    fixed = not minute.startswith("*") and not hour.startswith("*")
    first = begin.astimezone(UTC).replace(second=0, microsecond=0)
    highest = first.astimezone(ZoneInfo(timezone)).replace(tzinfo=None)
    for moment, wall in _clock(timezone, first, end):
        if not fixed or wall - highest == MINUTE:
            shown = [wall]
        elif wall <= highest:
            continue  # the clocks were set back: this time has occurred before
        else:
            shown = _between(highest, wall)  # with those that were skipped
        highest = max(highest, wall)
        if any(_fits(each, fields, stars) for each in shown) and moment > begin:
            yield moment


def _clock(timezone: str, moment: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Each minute with its wall-clock time; clocks change only at quarters of an hour."""
    zone = ZoneInfo(timezone)
    offset = moment.astimezone(zone).utcoffset()
    while moment < end:
        moment += MINUTE
        if moment.minute % 15 == 0:
            offset = moment.astimezone(zone).utcoffset()
        assert offset is not None
        yield moment, moment.replace(tzinfo=None) + offset


def _between(before: datetime, now: datetime) -> list[datetime]:
    found = []
    while before < now:
        before += MINUTE
        found.append(before)
    return found


def _fits(wall: datetime, fields: list[set[int]], stars: list[bool]) -> bool:
    minutes, hours, days, months, weekdays = fields
    if wall.minute not in minutes or wall.hour not in hours or wall.month not in months:
        return False
    of_month = wall.day in days
    of_week = wall.isoweekday() in weekdays or wall.isoweekday() % 7 in weekdays
    # As in cron: two restrictions of the day are alternatives.
    return of_month and of_week if stars[2] or stars[4] else of_month or of_week


def _values(part: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for term in part.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        elif step and not last:
            last = str(high)
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found
