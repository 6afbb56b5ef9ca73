"""A rate limit is detected in errors: by class, status code, headers and cause."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from treadle import RateLimited
from treadle.worker.outcomes import failure_of
from treadle.worker.rate_limits import RateLimit, find_rate_limit, parse_retry_after

pytestmark = pytest.mark.requirement("R6")
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


class Response:
    """A response as HTTP libraries have them."""

    def __init__(self, status_code: int, headers: Any = None) -> None:
        self.status_code = status_code
        self.headers = headers if headers is not None else {}

    def __repr__(self) -> str:
        return f"Response({self.status_code}, {self.headers})"


class ApiError(Exception):
    """An error with whatever attributes a library gives it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("it broke")
        for name, value in attributes.items():
            setattr(self, name, value)


class RateLimitError(Exception):
    pass


class ProviderError(RateLimitError):
    pass


class Grumpy(Exception):
    """Asked for anything, it breaks."""

    @property
    def status_code(self) -> int:
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    "error",
    [
        RateLimitError(),
        ProviderError(),
        ApiError(status_code=429),
        ApiError(status=429),
        ApiError(code=429),
        ApiError(code="429"),
        ApiError(status_code=529),
        ApiError(response=Response(429)),
        ApiError(response={"ResponseMetadata": {"HTTPStatusCode": 429}}),
        type("ThrottlingException", (Exception,), {})(),
        type("ResourceExhausted", (Exception,), {})(),
        type("OverloadedError", (Exception,), {})(),
        ExceptionGroup("some", [ValueError("x"), ApiError(status_code=429)]),
    ],
    ids=repr,
)
def test_an_error_that_is_a_rate_limit(error: Exception) -> None:
    assert find_rate_limit(error) == RateLimit(None)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("429"),
        ApiError(status_code=500),
        ApiError(status_code=503),
        ApiError(status_code=True),
        ApiError(code="4290"),
        ApiError(retry_after=5),
        ApiError(status_code=500, response=Response(500, {"Retry-After": "5"})),
        ApiError(response=None, headers=42),
        ApiError(response=object()),
        Grumpy(),
        KeyError(),
        SystemExit(429),
    ],
    ids=repr,
)
def test_an_error_that_is_not(error: BaseException) -> None:
    assert find_rate_limit(error) is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"response": Response(429, {"Retry-After": "7"})},
        {"response": Response(429, {"retry-after": "7"})},
        {"response": Response(429, {"RETRY-AFTER": 7})},
        {"response": Response(429, {"retry-after-ms": "7000", "retry-after": "8"})},
        {"response": Response(503, {"Retry-After": "7"})},
        {"status_code": 429, "headers": {"Retry-After": "7"}},
        {"status_code": 429, "headers": {"Retry-After": b"7"}},
        {"status_code": 429, "retry_after": 7},
        {"status_code": 429, "retry_after": timedelta(seconds=7)},
        {"status_code": 429, "retry_after_s": "7"},
        {"status_code": 503, "retry_after": 7.0},
        {"response": {"status_code": 429, "headers": {"Retry-After": "7"}}},
        {
            "response": Response(
                429,
                {
                    "Date": "Wed, 01 Jul 2026 12:00:00 GMT",
                    "Retry-After": "Wed, 01 Jul 2026 12:00:07 GMT",
                },
            )
        },
    ],
    ids=str,
)
def test_the_time_it_asks_for(attributes: dict[str, Any]) -> None:
    found = find_rate_limit(ApiError(**attributes))

    assert found is not None
    assert found.retry_after_s == pytest.approx(7, abs=0.01)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30),
        (" 30 ", 30),
        (0, 0),
        (1.5, 1.5),
        ("Wed, 01 Jul 2026 12:00:30 GMT", 30),
        ("Wednesday, 01-Jul-26 12:00:30 GMT", 30),
        ("Wed, 01 Jul 2026 11:00:00 GMT", 0),
        (format_datetime(NOON + timedelta(hours=2)), 7200),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Wed, 99 Jul 2026 12:00:30 GMT", None),
        (None, None),
        (True, None),
        ([30], None),
        (10**400, None),
    ],
    ids=str,
)
def test_retry_after_in_both_its_forms(value: Any, seconds: float | None) -> None:
    assert parse_retry_after(value, NOON) == seconds


def test_a_cause_counts_however_deep_and_its_time_with_it() -> None:
    def fail() -> None:
        try:
            try:
                raise ApiError(response=Response(429, {"Retry-After": "7"}))
            except ApiError as error:
                raise RuntimeError("the model did not answer") from error
        except RuntimeError:
            raise KeyError("answer")  # noqa: B904 - in the context, not as the cause

    with pytest.raises(KeyError) as raised:
        fail()

    assert find_rate_limit(raised.value) == RateLimit(7)


def test_a_context_that_was_put_away_does_not_count() -> None:
    error = ValueError("a better idea")
    error.__context__, error.__suppress_context__ = RateLimitError(), True

    assert find_rate_limit(error) is None
    error.__suppress_context__ = False
    assert find_rate_limit(error) is not None


def test_errors_that_cause_each_other_come_to_an_end() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first

    assert find_rate_limit(first) is None


def test_the_time_may_come_from_the_cause() -> None:
    error = RateLimitError()
    error.__cause__ = ApiError(status_code=429, retry_after=9)

    assert find_rate_limit(error) == RateLimit(9)


def test_the_rate_limit_that_a_handler_raises_wins() -> None:
    error = RateLimitError()
    error.__cause__ = RateLimited(9, key="llm")

    failure = failure_of(error)
    assert (failure.failure_class, failure.retry_after_s, failure.key) == ("rate_limit", 9, "llm")
