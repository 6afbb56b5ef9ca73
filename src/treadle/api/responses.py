"""JSON as this server writes it: snake_case, numbers as numbers, moments in UTC.

Routes answer with bytes that are ready. Their models say in the OpenAPI document what is in them;
nothing is checked a second time on the way out.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

MEDIA_TYPE = "application/json"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    datetime: _utc,
    Decimal: float,
    timedelta: timedelta.total_seconds,
}


def json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a view with values that JSON has words for."""
    plain = _PLAIN
    return {
        name: plain[type(value)](value) if type(value) in plain else value
        for name, value in row.items()
    }


def json_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a view with values that JSON has words for."""
    return [json_row(row) for row in rows]


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON answer; rows of views go through `json_row` first."""
    return Response(to_json(value), status, headers, MEDIA_TYPE)
