"""Lists of the work API: plain arrays in pages, the next of which is named in a Link header."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from treadle.api.wire import answer, records

# Also where nothing is said: most clients look at one page.
PAGE = 1000
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


def page(
    request: Request, shown: Sequence[Mapping[str, Any]], limit: int, *, more: bool
) -> Response:
    """A page of rows; with `more` another one follows."""
    headers = {}
    if more:
        url = request.url.include_query_params(limit=limit, cursor=shown[-1]["id"])
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return answer(records(shown), headers=headers)
