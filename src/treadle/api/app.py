"""The server as one ASGI application: `make_app()` puts the routers of all protocols together."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

from treadle import __version__
from treadle.api import explained, harness, health, problems, projects, queue, reference, v1, work
from treadle.api.access import need
from treadle.api.dispatch import spread
from treadle.api.feed import Feed
from treadle.api.v1.crowd import Crowd
from treadle.api.v1.waiting import ringing
from treadle.api.wall import OPEN_PATHS, guard
from treadle.app import Treadle

# What stands in front of the routes may answer with these, whatever is asked.
EVERYWHERE = (400, 401, 403, 408, 413, 414, 415, 422, 429, 431, 503)


def routers() -> list[APIRouter]:
    """One per wire protocol."""
    return [
        health.router,
        reference.router,
        explained.router,
        queue.router,
        harness.router,
        projects.router,
        work.router,
        *v1.routers(),
    ]


def make_app(treadle: Treadle, *, local: bool = False, hosts: Iterable[str] = ()) -> FastAPI:
    """The application on a database; connections are opened when it starts.

    `local` says that only this host can reach it: then no token is needed before there is one, as
    long as it is called by a name of this host, one of `hosts` or of the settings.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with treadle, ringing(app, treadle), app.state.feed.running():
            yield

    app = FastAPI(
        title="Treadle",
        version=__version__,
        summary="Tasks for fleets of agents, kept in PostgreSQL.",
        lifespan=lifespan,
        # The page that shows the document loads nothing from elsewhere; see treadle.api.reference.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # It would lead to http:// whatever a proxy in front of the server speaks.
        redirect_slashes=False,
    )
    app.state.stopping = anyio.Event()
    app.state.treadle = treadle
    app.state.crowd = Crowd(treadle.gateway)
    app.state.feed = Feed(treadle, treadle.settings.sse_max)
    problems.install(app)
    for router in routers():
        # Not included: FastAPI looks through included routers at a cost for each of their routes.
        app.router.routes.extend(router.routes)

    @app.get("/openapi.json", include_in_schema=False, dependencies=[need("read")])
    def document() -> JSONResponse:
        # In a thread: it takes a while the first time.
        return JSONResponse(app.openapi())

    spread(app.router)
    guard(app, treadle, local=local, hosts=hosts)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: problems in one shape, whatever FastAPI would say by itself."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        shape = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(shape.pop("$defs", {}))
        schemas["Problem"] = shape
        _add_everywhere(document)
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema


def _add_everywhere(document: dict[str, Any]) -> None:
    """What the wall and the limits answer, and the token that they want, on every operation."""
    components = document["components"]
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    components["responses"] = {
        f"Problem{status}": said for status, said in problems.answers(*EVERYWHERE, 404).items()
    }
    for path, operations in document.get("paths", {}).items():
        for operation in operations.values():
            own = operation["responses"]
            # FastAPI describes its own shape of what is not valid.
            own.pop("422", None)
            # A part of a path that has a slash or a line break in it may lead nowhere.
            for status in (*EVERYWHERE, *((404,) if "{" in path else ())):
                own.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
            if path not in OPEN_PATHS:
                operation["security"] = [{"token": []}]
