"""A route is closed until it names its needs and its object is checked."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated
from uuid import UUID

import psycopg
import pytest
from fastapi import APIRouter
from starlette.requests import Request

from tests.drivers.databases import NewDatabase
from tests.drivers.http.bound_tokens import FORBIDDEN, Callers, bound
from tests.drivers.http.v1 import code_of, enqueue, status_of
from treadle import Treadle
from treadle.api import app as server
from treadle.api.access import (
    CLAIM,
    FILTER,
    LOCAL,
    NEW,
    OPEN,
    PUBLIC,
    TASK,
    Access,
    Kind,
    requires,
)
from treadle.errors import Forbidden

NOWHERE = "postgresql://nowhere/nothing"
Read = Annotated[Access, requires("read", on=OPEN)]
Public = Annotated[Access, requires("read", on=PUBLIC)]


@pytest.fixture(scope="module")
def callers(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callers]:
    with bound(new_database, tmp_path_factory.mktemp("bound")) as found:
        yield found


async def forgotten() -> str:
    return "secret"


async def doubled(one: Read, two: Annotated[Access, requires("read", on=TASK)]) -> str:
    return "secret"


async def published(access: Public) -> str:
    return "secret"


async def named(access: Read) -> str:
    return "secret"


def started(monkeypatch: pytest.MonkeyPatch, route: object) -> None:
    """Start an application with one more route."""
    router = APIRouter()
    router.get("/more")(route)  # type: ignore[type-var]
    routers = [*server.routers(), router]
    monkeypatch.setattr(server, "routers", lambda: routers)
    server.make_app(Treadle(NOWHERE))


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("route", [forgotten, doubled, published])
def test_an_application_with_a_route_that_does_not_name_its_needs_does_not_start(
    monkeypatch: pytest.MonkeyPatch, route: object
) -> None:
    with pytest.raises(RuntimeError, match="the route /more must have one parameter like"):
        started(monkeypatch, route)


def test_an_application_with_a_route_that_names_its_needs_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(monkeypatch, named)


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("kind", [NEW, CLAIM, FILTER], ids=lambda kind: kind.name)
async def test_the_database_is_closed_until_the_body_is_checked(kind: Kind) -> None:
    access = Access(LOCAL, Treadle(NOWHERE))
    await kind(access, Request({"type": "http"}))

    for closed in ("db", "app"):
        with pytest.raises(RuntimeError, match="has not checked"):
            getattr(access, closed)

    assert access.claims_for("a", ["default"]) is access.db


@pytest.mark.requirement("B10")
async def test_the_database_is_closed_when_the_id_of_a_row_cannot_be_read() -> None:
    access = Access(LOCAL, Treadle(NOWHERE))
    await TASK(access, Request({"type": "http", "path_params": {"task_id": "no-id"}}))

    with pytest.raises(RuntimeError, match="has not checked"):
        _ = access.db


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("key", [None, "k"], ids=["once", "with a key"])
@pytest.mark.parametrize("part", ["tasks", "dags"])
def test_a_task_that_moves_before_the_write_is_not_changed(
    callers: Callers, key: str | None, part: str
) -> None:
    if part == "tasks":
        made = task = enqueue(callers.admin, queue="mail")
    else:
        plan = {"name": "d", "tasks": [{"type": "code", "queue": "mail"}]}
        dag = callers.admin.post("/v1/dags", json=plan).json()
        made, [task] = dag["id"], dag["tasks"]
    headers = {} if key is None else {"Idempotency-Key": f"{key}-{part}"}
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"

    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(callers.sql.info.dsn, password=callers.sql.info.password) as mover,
    ):
        mover.execute("update treadle.tasks set queue = 'default' where id = %s", [UUID(task)])
        asked = threads.submit(callers.mail.post, f"/v1/{part}/{made}/cancel", headers=headers)
        while callers.sql.execute(waiting).fetchone() == (0,):
            assert not asked.done(), asked.result().text
        mover.commit()

        assert code_of(asked.result()) == FORBIDDEN
    assert status_of(callers.admin, task) == "ready"


def test_a_filter_needs_a_queue_of_the_token() -> None:
    who = Access(LOCAL, Treadle(NOWHERE)).caller
    limited = type(who)("mailer", who.scopes, frozenset({"mail"}))

    for queue in (None, "default"):
        with pytest.raises(Forbidden):
            Access(limited, Treadle(NOWHERE)).check_filter(queue)
