"""Bodies of requests and responses: field types, models made from the list of fields, JSON.

Bodies are strict and bounded, and reject unknown fields. A `DirectRoute` reads its own body: fleets
call enqueue, claim and complete all the time, and FastAPI would take longer to resolve their
arguments than the rest of the request takes (ADR 29). The function of such a route gets the request
and its path parameters, and calls `read_body`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypeVar, get_origin
from uuid import UUID

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle import fields

INT64 = 2**63 - 1


def _storable(text: str) -> str:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("has a character that PostgreSQL cannot store")
    return text


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _written(value: object) -> object:
    """Reject numbers, which pydantic would read as seconds since 1970."""
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("must be a time like 2026-01-31T12:00:00Z")
    return value


Text = Annotated[str, AfterValidator(_storable)]
Visible = Annotated[Text, AfterValidator(_visible)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=50)]
Queues = Annotated[list[Name], Field(min_length=1, max_length=100)]
Id = Annotated[UUID, Field(strict=False)]
Object = dict[str, Any]
Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_written)]
EventId = Annotated[int, Field(ge=0, le=INT64)]
Usd = Annotated[float, Field(ge=0, le=99_999_999, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=315_360_000, allow_inf_nan=False)]


M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """A strict request body: the string "5" is not a number, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def named(self) -> dict[str, Any]:
        """The fields that were sent, also those with null."""
        return self.model_dump(exclude_unset=True, by_alias=True)


class Reason(Body):
    """The reason for a change; shown with the object."""

    reason: Text | None = Field(None, max_length=500)


class Note(Body):
    """The reason for a decision; stored with the decision."""

    note: Text | None = Field(None, max_length=2000)


def with_fields(given: Iterable[fields.Field]) -> Callable[[type[M]], type[M]]:
    """Class decorator: add task fields to the body of a request, with their bounds.

    A field that the class declares keeps its default and gets its bounds.
    """

    def decorate(body: type[M]) -> type[M]:
        added: dict[str, Any] = {}
        for field in given:
            own = body.model_fields.get(field.wire)
            info = FieldInfo(default=None) if own is None else copy(own)
            info.description = info.description or field.help
            hint = _request_type(field)
            added[field.wire] = (hint | None if info.default is None else hint, info)
        return _extended(body, added)

    return decorate


def with_columns(
    shown: Iterable[fields.Field], *, nullable: bool = False
) -> Callable[[type[M]], type[M]]:
    """Class decorator: add task fields to a response; `nullable` says that all may be null.

    A field that the class declares stays as it is.
    """

    def decorate(body: type[M]) -> type[M]:
        added: dict[str, Any] = {}
        for field in shown:
            if field.wire not in body.model_fields:
                hint = _response_type(field)
                if hint is not Any and (nullable or not field.has("always")):
                    hint = hint | None
                added[field.wire] = (hint, Field(description=field.help))
        return _extended(body, added)

    return decorate


def _extended(body: type[M], added: dict[str, Any]) -> type[M]:
    return create_model(
        body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__, **added
    )


def _request_type(field: fields.Field) -> Any:
    """The type of a field in a request, with its bounds."""
    low, high = field.low, field.high
    match field.kind:
        case "integer":
            return Annotated[int, Field(ge=low, le=high)]
        case "number":
            return Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
        case "text":
            return Annotated[Text, Field(min_length=_count(low), max_length=_count(high))]
        case "names":
            return Annotated[list[Name], Field(max_length=_count(high))]
        case "time":
            return Moment
        case "uuid":
            return Id
        case "json" if field.type in _NESTED:
            return _NESTED[field.type]
        case "json" if get_origin(field.type) is Sequence:
            return Annotated[list[Object], Field(max_length=_count(high))]
        case "json":
            return Object
        case _:
            return field.type


def _count(bound: float | None) -> int | None:
    """A bound of a length; None if there is none."""
    return int(bound) if bound else None


def _response_type(field: fields.Field) -> Any:
    if field.kind != "json" or field.type in (Any, list[UUID], list[Object]):
        return field.type
    return list[Object] if get_origin(field.type) is Sequence else Object


@with_fields(fields.fields_of(fields.RetryPolicy))
class RetryPolicy(Body):
    """How failed attempts are retried; what is left out comes from the type, then the queue."""


@with_fields(fields.fields_of(fields.BreakerSettings))
class BreakerSettings(Body):
    """When failures in a row stop a type, and how it is tried again."""


class Edge(Body):
    """A dependency; an optional one may also be cancelled."""

    task: Name
    optional: bool = False


_NESTED: dict[Any, Any] = {
    fields.RetryPolicy: RetryPolicy,
    fields.BreakerSettings: BreakerSettings,
    fields.After: Annotated[list[Name | Edge], Field(max_length=1000)],
    fields.Inputs: Object,
}


MEDIA_TYPE = "application/json"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    datetime: _utc,
    Decimal: float,
    timedelta: timedelta.total_seconds,
}


def json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a view with values that JSON can represent."""
    plain = _PLAIN
    return {
        name: plain[type(value)](value) if type(value) in plain else value
        for name, value in row.items()
    }


def json_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a view with values that JSON can represent."""
    return [json_row(row) for row in rows]


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response; pass rows of views through `json_row` first."""
    return Response(to_json(value), status, headers, MEDIA_TYPE)


Model = TypeVar("Model", bound=BaseModel)
# For the OpenAPI document.
BODIES: list[type[BaseModel]] = []
_UUID = TypeAdapter(UUID)


class DirectRoute(APIRoute):
    """Runs the `dependencies` of the route, then its function: `f(request, task_id=UUID(...))`.

    Path parameters are UUIDs, and each dependency takes the request only.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # In place of FastAPI's wrapper, which opens two exit stacks for its own dependencies.
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        for each in self.dependencies:
            if each.dependency:
                await each.dependency(request)
        ids = {name: _read_id(name, text) for name, text in request.path_params.items()}
        response: Response = await self.endpoint(request, **ids)
        await response(scope, receive, send)


async def read_body(request: Request, model: type[Model]) -> Model:
    """Parse and validate the body in one step."""
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise _invalid(error, "body") from None


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The `openapi_extra` of a route that calls `read_body`."""
    BODIES.append(model)
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


def _read_id(name: str, text: str) -> UUID:
    try:
        return _UUID.validate_python(text)
    except ValidationError as error:
        raise _invalid(error, "path", name) from None


def _invalid(error: ValidationError, *place: str) -> RequestValidationError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return RequestValidationError([{**each, "loc": (*place, *each["loc"])} for each in found])
