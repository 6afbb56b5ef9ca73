"""A rate limit is detected in the errors of agents, without false positives."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.drivers.engine import Driver
from tests.drivers.gates import closed_for

pytestmark = pytest.mark.requirement("R6")

TELLING = [
    "Rate limit reached for requests",
    "rate-limited by the provider",
    "anthropic.RateLimitError: Error code: 429",
    "MyRateLimitError",
    "rate_limit_error",
    "RATE LIMIT",
    "HTTP 429",
    "HTTP/1.1 429 Too Many Requests",
    "status=429, giving up",
    "status:429",
    "got (429).",
    '{"error": {"code":429,"message":"slow"}}',
    '{\n  "error": {\n    "code": 429,\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}',
    "Too Many Requests",
    "TooManyRequests",
    "Quota exceeded for metric",
    "insufficient_quota: You exceeded your current quota",
    "Retry-After: 20",
    "please retry after 20 seconds",
    "please retry after Wed, 21 Oct 2026 07:28:00 GMT",
    "it broke\n\nTraceback (most recent call last):\n"
    '  File "a.py", line 3, in f\n    g()\nHTTPError: 429 Client Error',
    "RateLimitError: slow down\n\nKeyError: 'x'\n\nDuring handling of it: RateLimitError",
]
INNOCENT = [
    "task 4290 failed",
    "port 429x is taken",
    "connection to port 429 refused",
    "took 0.429 s",
    "429.5 ms",
    "1,429 rows",
    "see #429",
    "src/429/a.py",
    "order-429",
    "$429",
    "a separate limit of 5",
    "the corporate limit",
    "[Errno 122] Disk quota exceeded",
    "retry after fixing the tests",
    'it broke\n\nTraceback (most recent call last):\n  File "a.py", line 429, in rate_limit\n'
    "    guard_rate_limit(retry_after=3)  # too many requests\n    ~~~~~\nValueError: it broke",
    "Error: it broke\n    at rateLimit (a.js:429:12)\n    at main (a.js:3:1)",
    "validator rl crashed: TypeError: RateLimited.__init__() got an unexpected keyword argument",
    "ImportError: cannot import name 'RateLimitError' from 'llm'\n\nTraceback",
    "AssertionError: HTTP 429",
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'
    "NameError: name 'RateLimit' is not defined",
    "retry after Wednesday",
    "",
    None,
]
SENT_WITH_DATE = "Date: Wed, 21 Oct 2026 06:00:00 GMT\nRetry-After: Wed, 21 Oct 2026 06:00:05 GMT"


@pytest.mark.parametrize("text", TELLING)
def test_a_text_that_describes_a_rate_limit(driver: Driver, text: str) -> None:
    assert driver.value("select treadle.rate_limit_in(%s::text)", text) is True


@pytest.mark.parametrize("text", INNOCENT)
def test_a_text_that_does_not(driver: Driver, text: str | None) -> None:
    assert driver.value("select treadle.rate_limit_in(%s::text)", text) is False


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Retry-After: 20", 20),
        ("retry_after=1.5", 1.5),
        ('"retry-after": "30"', 30),
        ("Please retry after 2 minutes", 120),
        ("Please try again in 850ms.", 0.85),
        ("Please try again in 6.5s.", 6.5),
        ("try again in 1 hour", 3600),
        ("429 Too Many Requests", None),
        ("retry after fixing the tests", None),
        ("Retry-After: Wed, 21 Oct 2026 07:29:00 GMT", 60),
        ("{'retry-after': 'Wednesday, 21-Oct-26 08:28:00 GMT'}", 3600),
        ("please retry after Fri, 01 Jan 2027 00:00:00 UTC", 6193920),
        ("Retry-After: Wed, 21 Oct 2026 07:27:00 GMT", 0),
        (SENT_WITH_DATE, 5),
        ("Retry-After: Mon, 31 Feb 2026 00:00:00 GMT", 0),
        ("Retry-After: Wed, 21 Oct 2026 27:28:00 GMT", None),
        ("Retry-After: Wed, 00 Oct 0000 07:28:00 GMT", None),
        ("Date: Wed, 21 Oct 2026 07:29:00 GMT", None),
        (None, None),
    ],
)
def test_the_time_that_a_text_asks_for(
    driver: Driver, text: str | None, seconds: float | None
) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)

    assert driver.value("select treadle.retry_after_in(%s::text, %s)", text, now) == seconds


def test_a_date_in_the_text_of_an_error_closes_the_gate_until_then(driver: Driver) -> None:
    driver.enqueue()
    until = format_datetime(datetime.now(tz=UTC) + timedelta(seconds=300), usegmt=True)
    driver.fail(driver.claim_one("a"), f"HTTP 429, Retry-After: {until}", failure_class=None)

    assert 200 < closed_for(driver, "type:code") <= 300


@pytest.mark.parametrize(
    ("failure_class", "expected"),
    [(None, "rate_limit"), ("whatever", "rate_limit"), ("error", "error"), ("crash", "crash")],
)
def test_the_text_decides_when_no_valid_class_is_given(
    driver: Driver, failure_class: str | None, expected: str
) -> None:
    task = driver.enqueue()
    driver.fail(driver.claim_one("a"), "HTTP 429, retry after 40 s", failure_class=failure_class)

    assert driver.task(task)["failure_class"] == expected
    assert (closed_for(driver, "type:code") > 39) == (expected == "rate_limit")


def test_an_agent_that_reports_one_failure_by_its_text_needs_no_class(driver: Driver) -> None:
    task = driver.enqueue()
    claim = driver.claim_one("a")
    driver.rows("select treadle.fail_task(%s, %s, 'quota exceeded')", claim.id, claim.token)

    found = driver.task(task)
    assert (found["failure_class"], found["attempt"]) == ("rate_limit", 0)


def test_any_other_text_is_an_error(driver: Driver) -> None:
    task = driver.enqueue()
    driver.fail(driver.claim_one("a"), "it broke", failure_class=None)

    found = driver.task(task)
    assert (found["failure_class"], found["attempt"]) == ("error", 1)
