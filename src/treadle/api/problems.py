"""Errors as RFC 9457 problem documents.

`type` is the URL of a page about the kind of problem, `code` is its stable name for programs, and
the details of the error (`allowed`, `task_id`, `depth`) are further members.

The pages at /problems explain each `code`. They are made from the classes of `treadle.errors` and
from the status codes of HTTP. They need no token, because they show nothing that is not in the
public source.
"""

import html
import http
import math
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPMethod, HTTPStatus
from typing import Any, NamedTuple

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Match

from treadle.api.docs import HEADERS
from treadle.errors import ClaimLost, InvalidArgument, QueueFull, TreadleError, Unavailable
from treadle.masking import excerpt_name, mask_text

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S: dict[type[TreadleError], int] = {QueueFull: 5, Unavailable: 2}
# Python has these names only since 3.13.
_PHRASES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}
INTERNAL = "internal-error"
RETRYABLE = {429, 502, 503, 504}
ADVICE: dict[type[TreadleError], str] = {
    ClaimLost: "Drop the result: another worker has the task, or it has ended.",
    InvalidArgument: "Correct the request; `errors` says what is wrong and where.",
    QueueFull: "Slow down, or ask for a higher limit.",
    Unavailable: "Repeat the request with increasing delays.",
}

router = APIRouter(include_in_schema=False)


class FieldProblem(BaseModel):
    """An error in one part of a request."""

    pointer: str
    detail: str


class Problem(BaseModel):
    """An error, as every route of this server returns it."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = None
    hint: str | None = None
    errors: list[FieldProblem] | None = None
    retry_after: int | None = None


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problem documents of a route, for the OpenAPI document."""
    return {
        status: {
            "description": phrase(status),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def phrase(status: int) -> str:
    """The reason phrase of a status, the same in every version of Python."""
    return _PHRASES.get(status) or http.HTTPStatus(status).phrase


def code_of(status: int) -> str:
    """The code of a problem that has only an HTTP status."""
    return phrase(status).lower().replace(" ", "-")


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    facts: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """Make a problem document without its empty members; `facts` cannot replace its own members."""
    body = {
        **(facts or {}),
        "type": f"/problems/{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        **members,
    }
    shown = {name: value for name, value in body.items() if value is not None}
    sent = dict(headers or {})
    if "retry_after" in shown:
        sent["Retry-After"] = str(shown["retry_after"])
    return JSONResponse(jsonable_encoder(shown), status, sent, MEDIA_TYPE)


def of_error(request: Request, error: TreadleError) -> Response:
    """The problem document of a TreadleError."""
    after = error.detail.get("retry_after_s", RETRY_AFTER_S.get(type(error)))
    return problem(
        error.http_status,
        error.code,
        str(error),
        facts=error.detail,
        headers={"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None,
        instance=request.url.path,
        hint=error.hint,
        retry_after=None if after is None else math.ceil(float(str(after))),
    )


def install(app: FastAPI) -> None:
    """Turn every error of an application into a problem document."""

    @app.exception_handler(TreadleError)
    async def ours(request: Request, error: TreadleError) -> Response:
        if error.http_status >= 500 and not isinstance(error, QueueFull):
            log.warning("request.failed", path=request.url.path, error=str(error))
        return of_error(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = [_field(item) for item in error.errors()]
        first = ": ".join(found[0].values()).removeprefix(": ") if found else "not valid"
        return problem(
            InvalidArgument.http_status,
            InvalidArgument.code,
            first,
            instance=request.url.path,
            errors=found,
        )

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_allowed_methods(request))
        return problem(
            error.status_code,
            code_of(error.status_code),
            str(error.detail),
            instance=request.url.path,
            headers=headers,
        )

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        log.error("request.crashed", path=request.url.path, exc_info=error)
        return problem(
            500,
            "internal-error",
            "An unexpected error occurred; see the log of the server.",
            instance=request.url.path,
        )


def _allowed_methods(request: Request) -> list[str]:
    """The methods of all routes of a path; Starlette names those of one route."""
    routes: list[BaseRoute] = request.app.routes
    return [
        method
        for method in sorted(HTTPMethod)
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes
        )
    ]


def _field(item: Mapping[str, Any]) -> dict[str, str]:
    """The error of one field, with the names that the caller used."""
    kind, place, text = item["type"], _pointer(item["loc"]), str(item["msg"])
    if kind in ("missing", "json_invalid") and item["loc"] == ("body",):
        # treadle.api.limits rejects a body that is not JSON; here there is none.
        place, text = "", "the request needs a body"
    elif kind == "too_long" and text.startswith("Value "):
        # pydantic calls the length of a string with a validator "items".
        text = text.replace("Value", "Text", 1).replace("items after validation", "characters")
    return {"pointer": place, "detail": mask_text(text.removeprefix("Value error, "))}


def _pointer(location: tuple[int | str, ...]) -> str:
    """The place in the request: a JSON pointer for a body, `query/limit` for the rest."""
    place, *parts = (excerpt_name(str(part)) for part in location)
    return "/".join(["" if place == "body" else place, *parts])


class ErrorPage(NamedTuple):
    """The explanation of a code."""

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
def explained() -> dict[str, ErrorPage]:
    """Every kind of problem of this server, by its code."""
    found = {
        (code := code_of(status)): ErrorPage(code, status, status.description or phrase(status))
        for status in HTTPStatus
        if status >= 400
    }
    found[INTERNAL] = ErrorPage(
        INTERNAL, 500, "An unexpected error occurred; see the log of the server."
    )
    for cls in _classes():
        meaning = " ".join((cls.__doc__ or "").split())
        found[cls.code] = ErrorPage(
            cls.code, cls.http_status, meaning, cls.__name__, cls.sqlstate, ADVICE.get(cls)
        )
    return found


def _classes(cls: type[TreadleError] = TreadleError) -> Iterator[type[TreadleError]]:
    # Not the classes of applications and tests.
    if cls.__module__ == "treadle.errors":
        yield cls
    for below in cls.__subclasses__():
        yield from _classes(below)


@router.get("/problems")
async def problem_index() -> HTMLResponse:
    """List all kinds of problems."""
    rows = "".join(
        f'<tr><td><a href="problems/{each.code}">{each.code}</a></td><td>{each.status}</td>'
        f"<td>{html.escape(each.meaning)}</td></tr>\n"
        for each in sorted(explained().values())
    )
    head = "<tr><th>code</th><th>status</th><th>meaning</th></tr>\n"
    return _page("Problems", f"<table>\n{head}{rows}</table>")


@router.get("/problems/{code}")
async def problem_page(code: str) -> HTMLResponse:
    """Explain one kind of problem."""
    found = explained().get(code)
    if found is None:
        raise HTTPException(404)
    facts = {
        "HTTP status": f"{found.status} {phrase(found.status)}",
        "code": found.code,
        "Python": found.name and f"treadle.errors.{found.name}",
        "SQLSTATE": found.sqlstate,
        "retry": "later" if found.status in RETRYABLE else "not without a change",
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
