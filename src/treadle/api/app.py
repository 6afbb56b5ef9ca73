"""The server as one ASGI application: `make_app()` puts the routers of all protocols together."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

from treadle import __version__
from treadle.api import docs, harness, problems, projects, push, v1, work
from treadle.api.access import Db, requires
from treadle.api.auth import OPEN_PATHS, add_middleware
from treadle.api.batch import RequestBatcher
from treadle.api.dispatch import spread
from treadle.api.long_poll import long_poll_lifespan
from treadle.api.problems import answers
from treadle.api.stream import EventBroadcaster
from treadle.app import Treadle
from treadle.db.database import Database
from treadle.errors import Unavailable

# Before those who ask lose their patience: a probe often waits no longer than this.
ANSWER_S = 3.0

health_router = APIRouter(tags=["health"])
# What stands in front of the routes may answer with these, whatever is asked.
EVERYWHERE = (400, 401, 403, 408, 413, 414, 415, 422, 429, 431, 503)


@health_router.head("/healthz", include_in_schema=False)
@health_router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@health_router.head("/health", include_in_schema=False)
@health_router.head("/readyz", include_in_schema=False)
@health_router.get("/health", responses=answers(503))
@health_router.get("/readyz", responses=answers(503))
async def ready(db: Db) -> dict[str, Any]:
    """The database answers too, and has the schema that this server needs."""
    await db.calls.open()
    try:
        with anyio.move_on_after(ANSWER_S):
            version, _ = await db.calls.schema_version()
            said = {"status": "ok", "schema_version": version}
            return {**said, "last_contact_at": last_contact_at(db)}
    except Unavailable as error:
        raise Unavailable(
            str(error), hint=error.hint, last_contact_at=last_contact_at(db)
        ) from None
    raise Unavailable(
        f"the database did not answer within {ANSWER_S:g} s", last_contact_at=last_contact_at(db)
    )


def last_contact_at(db: Database) -> str:
    """When the database last answered this server, to the second."""
    at = datetime.now(UTC) - timedelta(seconds=time.monotonic() - db.calls.contact_at)
    return at.isoformat(timespec="seconds")


def routers() -> list[APIRouter]:
    """One per wire protocol."""
    return [
        health_router,
        docs.router,
        problems.router,
        push.router,
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
        async with treadle, long_poll_lifespan(app, treadle), app.state.feed.running():
            yield

    app = FastAPI(
        title="Treadle",
        version=__version__,
        summary="Tasks for fleets of agents, kept in PostgreSQL.",
        lifespan=lifespan,
        # The page that shows the document loads nothing from elsewhere; see treadle.api.docs.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # It would lead to http:// whatever a proxy in front of the server speaks.
        redirect_slashes=False,
    )
    app.state.stopping = anyio.Event()
    app.state.treadle = treadle
    app.state.batcher = RequestBatcher(treadle.db)
    app.state.feed = EventBroadcaster(treadle, treadle.settings.sse_max)
    problems.install(app)
    for router in routers():
        # Not included: FastAPI looks through included routers at a cost for each of their routes.
        app.router.routes.extend(router.routes)

    @app.get("/openapi.json", include_in_schema=False, dependencies=[requires("read")])
    def document() -> JSONResponse:
        # In a thread: it takes a while the first time.
        return JSONResponse(app.openapi())

    spread(app.router)
    add_middleware(app, treadle, local=local, hosts=hosts)
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
    """What the middlewares answer, and the token that they need, on every operation."""
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
