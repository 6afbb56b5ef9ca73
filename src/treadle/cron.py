"""Cron lines in a time zone, interpreted like cron on Debian.

* A line with a fixed minute and hour (`30 2 * * *`) means wall-clock times. A time that a
  clock change skips runs right after the change; a time that occurs twice runs the first time.
* A line whose minute or hour begins with `*` (`*/15 * * * *`, `0 */2 * * *`) follows elapsed
  time: it runs at every matching wall-clock time, also twice, and never for skipped times.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from treadle.errors import InvalidArgument, extra

if TYPE_CHECKING:
    from cronsim import CronSim

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
HINT = "Five fields: minute hour day month weekday, as 30 2 * * MON-FRI; or @daily, @hourly …"
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
# The default start, where any would do.
_ANY = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Cron:
    """One cron line in one time zone; all arguments and results are in UTC."""

    def __init__(self, line: str, timezone: str = "UTC") -> None:
        self.line = line.strip()
        self.timezone = timezone
        self._zone = zone_named(timezone)
        self._fields = _fields_of(self.line)
        minute, hour, *_ = self._fields.split()
        self._fixed = not minute.startswith("*") and not hour.startswith("*")
        if next(self._walls(_ANY), None) is None:
            raise InvalidArgument(
                f"the cron line {line!r} never matches", hint=HINT, argument="cron"
            )

    def explain(self) -> str:
        """Describe the line in plain English."""
        return _simulation(self._fields, _ANY).explain()

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment; None when there is none in the next fifty years."""
        if not self._fixed:
            return self._passing_after(moment)
        times = _simulation(self._fields, moment.astimezone(self._zone))
        return next((found for each in times if (found := each.astimezone(UTC)) > moment), None)

    def times(self, moment: datetime) -> Iterator[datetime]:
        """All times after a moment, in order."""
        found = self.after(moment)
        while found is not None:
            yield found
            found = self.after(found)

    def next_times(self, moment: datetime, count: int = 5) -> list[datetime]:
        """The next few times."""
        return list(islice(self.times(moment), count))

    def latest(self, moment: datetime, first: datetime) -> datetime:
        """The last time up to a moment; `first` is a time that is not after it."""
        found, back = first, timedelta(minutes=1)
        while moment - back > first:
            begin = self.after(moment - back)
            if begin is not None and begin <= moment:
                found = begin
                break
            back *= 2
        while (later := self.after(found)) is not None and later <= moment:
            found = later
        return found

    def _passing_after(self, moment: datetime) -> datetime | None:
        """Walk from one change of the clocks to the next: in between, wall times are in order.

        cronsim does this too, but misses times where clocks are changed by half an hour.
        """
        moment = moment.astimezone(UTC)
        offset = self._offset(moment)
        wall = (moment + offset).replace(tzinfo=None)
        while (each := next(self._walls(wall), None)) is not None:
            found = each.replace(tzinfo=UTC) - offset
            shift = self._shift(moment, found)
            if shift is None:
                return found
            moment, offset = shift, self._offset(shift)
            wall = (moment + offset).replace(tzinfo=None) - _SECOND
        return None

    def _shift(self, begin: datetime, end: datetime) -> datetime | None:
        """The first moment after `begin`, up to `end`, at which the clocks have been changed."""
        if self._zone.key == "UTC":
            return None
        offset = self._offset(begin)
        while begin < end:
            step = min(begin + _DAY, end)
            if self._offset(step) != offset:
                # Clocks are changed on a whole second.
                low, high = begin.replace(microsecond=0), step.replace(microsecond=0)
                while high - low > _SECOND:
                    middle = low + (high - low) // _SECOND // 2 * _SECOND
                    if self._offset(middle) == offset:
                        low = middle
                    else:
                        high = middle
                return high
            begin = step
        return None

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or timedelta()

    def _walls(self, wall: datetime) -> Iterator[datetime]:
        """Wall-clock times of the line after this one, in order."""
        return _simulation(self._fields, wall)


def zone_named(name: str) -> ZoneInfo:
    """A time zone of the system's database."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InvalidArgument(
            f"there is no time zone {name!r}",
            hint="For example Europe/Berlin, America/New_York or UTC. Where the system has no "
            "time zones: pip install tzdata",
            argument="timezone",
        ) from None


def _fields_of(line: str) -> str:
    """The five fields of a line or of an alias."""
    if line.startswith("@"):
        found = ALIASES.get(line.lower())
        if found is None:
            raise InvalidArgument(
                f"{line!r} is not a cron line",
                hint=f"Use one of: {', '.join(ALIASES)}",
                argument="cron",
            )
        return found
    fields = line.split()
    if len(fields) != 5:
        raise InvalidArgument(
            f"a cron line has five fields, {line!r} has {len(fields)}", hint=HINT, argument="cron"
        )
    return " ".join(fields)


def _simulation(fields: str, wall: datetime) -> CronSim:
    with extra("cron", "cron lines need cronsim"):
        from cronsim import CronSim, CronSimError
    try:
        return CronSim(fields, wall)
    except CronSimError as error:
        raise InvalidArgument(
            f"{fields!r} is not a cron line: {str(error).lower()}", hint=HINT, argument="cron"
        ) from None
