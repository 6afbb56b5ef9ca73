"""The ASGI application: `make_app()` combines the routers of all protocols."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, FastAPI
from starlette.responses import JSONResponse

from treadle import __version__
from treadle.api import docs, harness, problems, projects, push, v1, work
from treadle.api.access import OPEN, Access, Public, needs_of, requires
from treadle.api.auth import add_middleware
from treadle.api.batch import RequestBatcher
from treadle.api.long_poll import long_poll_lifespan
from treadle.api.openapi import document_of
from treadle.api.problems import answers
from treadle.api.stream import EventBroadcaster
from treadle.app import Treadle
from treadle.db.database import Database
from treadle.errors import Unavailable

# Shorter than the usual timeout of a health probe.
ANSWER_S = 3.0

health_router = APIRouter(tags=["health"])


@health_router.head("/healthz", include_in_schema=False)
@health_router.get("/healthz")
async def alive() -> dict[str, str]:
    """Check that the process runs.

    It does not use the database.
    """
    return {"status": "ok"}


@health_router.head("/health", include_in_schema=False)
@health_router.head("/readyz", include_in_schema=False)
@health_router.get("/health", responses=answers(503))
@health_router.get("/readyz", responses=answers(503))
async def ready(access: Public) -> dict[str, Any]:
    """Check that the server is ready.

    The database responds and has the schema that this server needs; otherwise the response is 503.
    """
    db = access.db
    await db.calls.open()
    try:
        with anyio.move_on_after(ANSWER_S):
            version, _ = await db.calls.schema_version()
            return {
                "status": "ok",
                "schema_version": version,
                "last_contact_at": last_contact_at(db),
            }
    except Unavailable as error:
        raise Unavailable(
            str(error), hint=error.hint, last_contact_at=last_contact_at(db)
        ) from None
    raise Unavailable(
        f"the database did not respond within {ANSWER_S:g} s", last_contact_at=last_contact_at(db)
    )


def last_contact_at(db: Database) -> str:
    """When the database last answered this server, to the second."""
    at = datetime.now(UTC) - timedelta(seconds=time.monotonic() - db.calls.contact_at)
    return at.isoformat(timespec="seconds")


def routers() -> list[APIRouter]:
    """All routers, the most used ones first: routes are tried in order."""
    return [
        *v1.routers(),
        work.router,
        push.router,
        harness.router,
        projects.router,
        health_router,
        docs.router,
        problems.router,
    ]


def make_app(treadle: Treadle, *, local: bool = False, hosts: Iterable[str] = ()) -> FastAPI:
    """Create the application, which opens its connections to the database when it starts.

    `local` says that only this host can reach it. Requests then need no token until one exists, if
    their Host header names this host, one of `hosts`, or one of the settings.
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
        # treadle.api.docs has a page that loads nothing from other hosts.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # A redirect would lead to http://, also behind a proxy with TLS.
        redirect_slashes=False,
    )
    app.state.stopping = anyio.Event()
    app.state.treadle = treadle
    app.state.local = local
    app.state.nudged_agents = set()
    app.state.batcher = RequestBatcher(treadle.db)
    app.state.feed = EventBroadcaster(treadle, treadle.settings.sse_max)
    problems.install(app)
    for router in routers():
        # Not included: FastAPI matches an included route twice, and slower.
        app.router.routes.extend(router.routes)

    @app.get("/openapi.json", include_in_schema=False)
    def document(_: Annotated[Access, requires("read", on=OPEN)]) -> JSONResponse:
        # Not a coroutine, so that it runs in a thread: the first call takes a while.
        return JSONResponse(app.openapi())

    # Raises when a route does not name what it needs.
    app.state.needs = list(needs_of(app.routes))
    add_middleware(app, treadle, local=local, hosts=hosts)
    app.openapi = lambda: document_of(app)  # type: ignore[method-assign]
    return app
