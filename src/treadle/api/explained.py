"""The pages at /problems: what each `code` of a problem document means, so that `type` leads there.

They are made from the classes of `treadle.errors` and, for what HTTP itself says, from its status
codes. They are answered without a token, as is everything that the source of treadle shows.
"""

import html
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from typing import NamedTuple

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from treadle.api.problems import code_of, phrase
from treadle.api.reference import HEADERS
from treadle.errors import ClaimLost, InvalidArgument, QueueFull, TreadleError, Unavailable

INTERNAL = "internal-error"
WORTH_REPEATING = {429, 502, 503, 504}
ADVICE: dict[type[TreadleError], str] = {
    ClaimLost: "Drop the result: another worker has the task, or it has ended.",
    InvalidArgument: "Correct the request; `errors` says where it is wrong.",
    QueueFull: "Slow down, or have the limit raised.",
    Unavailable: "Repeat it, with growing pauses.",
}

router = APIRouter(include_in_schema=False)


class Explained(NamedTuple):
    """What is known about a code."""

    code: str
    status: int
    meaning: str
    name: str | None = None
    sqlstate: str | None = None
    advice: str | None = None

    @property
    def title(self) -> str:
        return self.code.replace("-", " ").capitalize()


@cache
def explained() -> dict[str, Explained]:
    """Every problem that this server can answer with, by its code."""
    found = {
        (code := code_of(status)): Explained(code, status, status.description or phrase(status))
        for status in HTTPStatus
        if status >= 400
    }
    found[INTERNAL] = Explained(INTERNAL, 500, "This was not expected; the log says more.")
    for cls in _classes():
        meaning = " ".join((cls.__doc__ or "").split())
        found[cls.code] = Explained(
            cls.code, cls.http_status, meaning, cls.__name__, cls.sqlstate, ADVICE.get(cls)
        )
    return found


def _classes(cls: type[TreadleError] = TreadleError) -> Iterator[type[TreadleError]]:
    # Classes of applications and of tests are no part of the protocol.
    if cls.__module__ == "treadle.errors":
        yield cls
    for below in cls.__subclasses__():
        yield from _classes(below)


@router.get("/problems")
async def problems() -> HTMLResponse:
    """All of them."""
    rows = "".join(
        f'<tr><td><a href="problems/{each.code}">{each.code}</a></td><td>{each.status}</td>'
        f"<td>{html.escape(each.meaning)}</td></tr>\n"
        for each in sorted(explained().values())
    )
    head = "<tr><th>code</th><th>status</th><th>meaning</th></tr>\n"
    return _page("Problems", f"<table>\n{head}{rows}</table>")


@router.get("/problems/{code}")
async def problem(code: str) -> HTMLResponse:
    """One of them."""
    found = explained().get(code)
    if found is None:
        raise HTTPException(404)
    facts = {
        "HTTP status": f"{found.status} {phrase(found.status)}",
        "code": found.code,
        "Python": found.name and f"treadle.errors.{found.name}",
        "SQLSTATE": found.sqlstate,
        "repeat it": "later" if found.status in WORTH_REPEATING else "not as it is",
        "what to do": found.advice,
    }
    rows = "".join(
        f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>\n"
        for name, value in facts.items()
        if value
    )
    more = '<p><a href="../problems">All problems</a></p>'
    return _page(
        found.title, f"<p>{html.escape(found.meaning)}</p>\n<table>\n{rows}</table>\n{more}"
    )


def _page(title: str, body: str) -> HTMLResponse:
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{html.escape(title)} - Treadle</title>\n<link rel="icon" href="data:,">\n</head>\n'
        f"<body>\n<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
    return HTMLResponse(text, headers=HEADERS)
