"""Lists of the work API: plain arrays in pages, the next of which is named in a Link header."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from treadle.api.wire import answer, records

PAGE = 200
Limit = Annotated[int, Query(ge=1, le=PAGE, description="Items on a page.")]
Cursor = Annotated[UUID | None, Query(description="The id of the last item of the page before.")]
PAGED: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "Link": {
                "description": 'The next page, as `<...>; rel="next"`, where there is one.',
                "schema": {"type": "string"},
            }
        }
    }
}


def page(request: Request, rows: Sequence[Mapping[str, Any]], limit: int) -> Response:
    """A page of rows, which are one more than it has where there is another one."""
    shown = rows[:limit]
    headers = {}
    if len(rows) > limit:
        url = request.url.include_query_params(limit=limit, cursor=shown[-1]["id"])
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return answer(records(shown), headers=headers)
