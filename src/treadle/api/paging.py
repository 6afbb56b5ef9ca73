"""Lists in pages with a cursor.

A cursor holds the sort key of the last item, so new rows do not shift the pages. A route:

    async def list_things(page: Page, db: Db) -> Response:
        rows = await db.things.page(after=page.after(UUID), limit=page.more)
        return page.answer(rows, "id")

Lists of the work API are plain arrays, with the next page in a Link header.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar, overload
from uuid import UUID

from fastapi import Depends, Query, Request
from pydantic import BaseModel
from pydantic_core import from_json, to_json
from starlette.responses import Response

from treadle.api.bodies import MEDIA_TYPE, json_response, json_row, json_rows
from treadle.errors import InvalidArgument

PAGE, LONGEST = 50, 200
# A page ends before the item that would make it larger, but has at least one item.
MOST_BYTES = 4 * 1024 * 1024
_CURSOR_BYTES = 2000
_INT64 = 2**63
Item = TypeVar("Item")
A = TypeVar("A")
B = TypeVar("B")
# Also the default, because most clients read one page only.
WORK_PAGE = 1000
Limit = Annotated[int, Query(ge=1, le=WORK_PAGE, description="Items on a page.")]
Cursor = Annotated[UUID | None, Query(description="The id of the last item of the previous page.")]
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


class Listed(BaseModel, Generic[Item]):
    """A page of a list; `next_cursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None = None


class Paging:
    """The requested part of a list."""

    def __init__(self, request: Request, limit: int, cursor: str | None) -> None:
        self._request = request
        self._cursor = cursor
        self.limit = limit

    @property
    def more(self) -> int:
        """How many rows to read: one more than the page has shows whether there is a next page."""
        return self.limit + 1

    @overload
    def after(self, kind: type[A], /) -> A | None: ...
    @overload
    def after(self, first: type[A], second: type[B], /) -> tuple[A, B] | None: ...
    def after(self, *kinds: type[Any]) -> Any:
        """The sort key after which the page begins; None for the first page."""
        if self._cursor is None:
            return None
        try:
            values = from_json(base64.urlsafe_b64decode(self._cursor + "=="))
            key = tuple(_READ[kind](value) for kind, value in zip(kinds, values, strict=True))
        except (ValueError, TypeError) as error:
            raise InvalidArgument(
                "the cursor is not from this list",
                hint="Send next_cursor of the previous page unchanged.",
                argument="cursor",
            ) from error
        return key[0] if len(kinds) == 1 else key

    def answer(self, rows: Sequence[Mapping[str, Any]], *key: str) -> Response:
        """Make a page of up to `more` rows; `key` are the columns of their order."""
        items = _fitting(rows[: self.limit])
        following = None
        headers = {}
        if len(rows) > len(items):
            last = to_json([rows[len(items) - 1][name] for name in key])
            following = base64.urlsafe_b64encode(last).decode().rstrip("=")
            url = self._request.url.include_query_params(limit=self.limit, cursor=following)
            headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        body = b'{"items":[%b],"next_cursor":%b}' % (b",".join(items), to_json(following))
        return Response(body, headers=headers, media_type=MEDIA_TYPE)


def _fitting(rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Encode the first rows, as many as fit on a page."""
    items: list[bytes] = []
    size = 0
    for row in rows:
        item = to_json(json_row(row))
        size += len(item)
        if items and size > MOST_BYTES:
            break
        items.append(item)
    return items


def _text(value: object) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError("not a string")
    return value


def _number(value: object) -> int:
    # Not isinstance, because a bool is an int.
    if type(value) is not int or not -_INT64 <= value < _INT64:
        raise ValueError("not a number")
    return value


_READ: dict[type[Any], Callable[[Any], Any]] = {
    UUID: lambda value: UUID(_text(value)),
    str: _text,
    int: _number,
    datetime: lambda value: datetime.fromisoformat(_text(value)),
}


# A coroutine, because FastAPI calls plain functions in another thread.
async def _paging(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LONGEST, description="Items on a page.")] = PAGE,
    cursor: Annotated[
        str | None, Query(max_length=_CURSOR_BYTES, description="next_cursor of the previous page.")
    ] = None,
) -> Paging:
    return Paging(request, limit, cursor)


Page = Annotated[Paging, Depends(_paging)]


def work_page(
    request: Request, shown: Sequence[Mapping[str, Any]], limit: int, *, more: bool
) -> Response:
    """A page of the work API; with `more` it links to the next one."""
    headers = {}
    if more:
        url = request.url.include_query_params(limit=limit, cursor=shown[-1]["id"])
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return json_response(json_rows(shown), headers=headers)
