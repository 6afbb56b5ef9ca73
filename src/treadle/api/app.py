"""The server as one ASGI application: `make_app()` puts the routers of all protocols together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from treadle import __version__
from treadle.api import health, problems
from treadle.app import Treadle


def routers() -> list[APIRouter]:
    """One per wire protocol."""
    return [health.router]


def make_app(treadle: Treadle) -> FastAPI:
    """The application on a database; connections are opened when it starts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with treadle:
            yield

    app = FastAPI(
        title="Treadle",
        version=__version__,
        summary="Tasks for fleets of agents, kept in PostgreSQL.",
        lifespan=lifespan,
        # The page that shows the document loads nothing from elsewhere; see treadle.api.reference.
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.treadle = treadle
    problems.install(app)
    for router in routers():
        app.include_router(router)
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
        refused = problems.answers(422)[422]
        for path in document.get("paths", {}).values():
            for operation in path.values():
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = refused
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema
