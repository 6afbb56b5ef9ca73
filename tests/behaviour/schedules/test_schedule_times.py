"""The meaning of cron lines in time zones, also around clock changes."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.calendars import minutes_of
from treadle.cron import ALIASES, Cron
from treadle.errors import InvalidArgument

YEAR = datetime(2026, 1, 1, tzinfo=UTC)
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
# Half an hour of summer time; clocks changed at midnight; no summer time.
LORD_HOWE, SANTIAGO, KOLKATA = "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"


def days_around(timezone: str) -> list[datetime]:
    """The days of 2026 before the clocks of a zone are changed."""
    return {
        BERLIN: [datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)],
        NEW_YORK: [datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 10, 31, 12, tzinfo=UTC)],
        LORD_HOWE: [datetime(2026, 4, 4, 0, tzinfo=UTC), datetime(2026, 10, 3, 0, tzinfo=UTC)],
        SANTIAGO: [datetime(2026, 4, 4, 12, tzinfo=UTC), datetime(2026, 9, 5, 12, tzinfo=UTC)],
        KOLKATA: [datetime(2026, 3, 28, 12, tzinfo=UTC)],
    }[timezone]


@pytest.mark.requirement("F19")
@pytest.mark.parametrize("timezone", [BERLIN, NEW_YORK, LORD_HOWE, SANTIAGO, KOLKATA])
@pytest.mark.parametrize(
    "line",
    [
        "30 2 * * *",
        "0 * * * *",
        "0 */2 * * *",
        "45 */2 * * *",
        "*/15 * * * *",
        "* 2 * * *",
        "0,30 1,2 * * *",
        "15 0-3 * * *",
        "0 0 * * *",
        "0 2,3 * * 0",
        "*/20 0-2 * * 6,0",
        "10-50/20 1 1-31 * 7",
    ],
)
def test_around_a_clock_change_times_follow_the_wall_clock(line: str, timezone: str) -> None:
    calendar = Cron(line, timezone)
    for begin in days_around(timezone):
        end = begin + timedelta(days=2)
        expected = list(minutes_of(line, timezone, begin, end))

        assert calendar.next_times(begin, len(expected)) == expected
        assert calendar.next_times(begin, len(expected) + 1)[-1] > end
        # From wherever it is asked: also from inside of what is skipped or doubled.
        for hours in range(48):
            moment = begin + timedelta(hours=hours, minutes=17, seconds=3, microseconds=7)
            assert calendar.after(moment) == next(
                (time for time in expected if time > moment), calendar.after(end)
            )


@pytest.mark.requirement("F19")
def test_a_fixed_time_that_is_skipped_comes_once_and_a_doubled_one_comes_once() -> None:
    nightly = Cron("30 2 * * *", BERLIN)

    spring = nightly.next_times(datetime(2026, 3, 28, 12, tzinfo=UTC), 2)
    autumn = nightly.next_times(datetime(2026, 10, 24, 12, tzinfo=UTC), 2)

    assert [str(time) for time in spring] == [
        "2026-03-29 01:00:00+00:00",
        "2026-03-30 00:30:00+00:00",
    ]
    assert [str(time) for time in autumn] == [
        "2026-10-25 00:30:00+00:00",
        "2026-10-26 01:30:00+00:00",
    ]


@pytest.mark.requirement("F19")
def test_an_alias_means_its_line() -> None:
    for alias, line in ALIASES.items():
        assert Cron(alias, NEW_YORK).next_times(YEAR) == Cron(line, NEW_YORK).next_times(YEAR)
    assert set(ALIASES) == {
        "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"
    }  # fmt: skip


@pytest.mark.requirement("F19")
def test_a_line_is_explained_in_plain_english() -> None:
    assert Cron("30 2 * * *").explain() == "At 02:30 every day"
    assert Cron("@weekly").explain() == "At 00:00 on Sunday"
    assert Cron("0 9 * * MON-FRI").explain() == "At 09:00 on Monday through Friday"


@pytest.mark.parametrize(
    ("line", "timezone", "says"),
    [
        ("0 30 2 * * *", "UTC", "five fields, '0 30 2 * * *' has 6"),
        ("30 2 * *", "UTC", "has 4"),
        ("", "UTC", "has 0"),
        ("61 * * * *", "UTC", "bad minute"),
        ("0 0 30 2 *", "UTC", "bad day-of-month"),
        ("0 0 * 2 MON#6", "UTC", "bad day-of-week"),
        ("@fortnightly", "UTC", "'@fortnightly' is not a cron line"),
        ("@daily", "Europe/Berln", "no time zone 'Europe/Berln'"),
        ("@daily", "../../etc/passwd", "no time zone"),
        ("@daily", "", "no time zone"),
    ],
)
def test_an_invalid_cron_line_or_zone_is_rejected(line: str, timezone: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says.replace("*", r"\*")):
        Cron(line, timezone)


@pytest.mark.parametrize("line", ["* * * * *", "30 2 * * *", "*/7 3 1 1 *", "0 0 29 2 *"])
def test_the_latest_time_is_found_without_walking_through_all(line: str) -> None:
    calendar = Cron(line, BERLIN)
    first = calendar.after(YEAR)
    assert first is not None
    moment = first + timedelta(days=500, hours=7)

    latest = calendar.latest(moment, first)

    following = calendar.after(latest)
    assert latest <= moment
    assert following is not None
    assert following > moment
    assert calendar.after(latest - timedelta(seconds=1)) == latest
