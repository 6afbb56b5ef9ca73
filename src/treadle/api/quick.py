"""Routes that are called all the time: FastAPI documents them, but does not find their arguments.

Its search takes longer than the work. A quick route takes a body, path parameters that are UUIDs,
the request, and dependencies that need nothing but the request, or that say with `quick` how they
come about with only that. Everything else is as in any route: errors, models, scopes.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Found = Callable[[Request], Awaitable[Any]]
_UUID = TypeAdapter(UUID)


class Quick(APIRoute):
    """A route whose arguments are found in one step each."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        handle = self.get_route_handler()

        # Without what FastAPI puts around for dependencies that end after the answer. Errors are
        # for the application's own handlers, which are around all routes.
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = app

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[..., Awaitable[Response]] = self.endpoint
        checks = [_found(each) for each in self.dependencies]
        parameters = inspect.signature(endpoint, eval_str=True).parameters
        # Who may not, hears that first, and not what is wrong with the body.
        order = sorted(parameters.values(), key=lambda each: _is_body(each.annotation))
        finders = {each.name: _finder(each) for each in order}

        async def handle(request: Request) -> Response:
            for check in checks:
                await check(request)
            return await endpoint(**{name: await find(request) for name, find in finders.items()})

        return handle


def _finder(parameter: inspect.Parameter) -> Found:
    kind = parameter.annotation
    if kind is Request:
        return _request
    if kind is UUID:
        return _path(parameter.name)
    if _is_body(kind):
        return _body(kind)
    if get_origin(kind) is Annotated and isinstance(get_args(kind)[1], Depends):
        return _found(get_args(kind)[1])
    raise TypeError(f"a quick route cannot have {parameter}")


def _is_body(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _found(wanted: Depends) -> Found:
    assert wanted.dependency is not None
    quick: Found = getattr(wanted.dependency, "quick", wanted.dependency)
    return quick


async def _request(request: Request) -> Request:
    return request


def _path(name: str) -> Found:
    async def find(request: Request) -> UUID:
        try:
            return _UUID.validate_python(request.path_params[name])
        except ValidationError as error:
            raise _refused(error, "path", name) from None

    return find


def _body(model: type[BaseModel]) -> Found:
    validate = model.__pydantic_validator__.validate_json

    async def find(request: Request) -> Any:
        try:
            return validate(await request.body())
        except ValidationError as error:
            raise _refused(error, "body") from None

    return find


def _refused(error: ValidationError, *place: str) -> RequestValidationError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return RequestValidationError([{**each, "loc": (*place, *each["loc"])} for each in found])
