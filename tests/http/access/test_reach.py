"""A token restricted to queues or a project sees their tasks, and no shared objects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.streams import Stream
from tests.drivers.http.tokens import Closed, bearer, closed, create
from tests.drivers.http.v1 import act, code_of, enqueue, register, status_of, take_one

FORBIDDEN = (403, "forbidden")
ALL = ("read", "enqueue", "work", "operate", "admin")
BOUND = ["mail", "project"]


@dataclass(frozen=True)
class Callers:
    """Clients with an admin token, a token for queue mail, and a token for project p."""

    admin: httpx2.Client
    mail: httpx2.Client
    project: httpx2.Client


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("closed")) as found:
        found.sql.execute("select treadle.define_queue('mail'), treadle.define_project('p')")
        yield found


@pytest.fixture(scope="module")
def callers(guarded: Closed) -> Callers:
    made = Callers(
        guarded.client(guarded.tokens["admin"]),
        guarded.client(create(guarded.sql, "mailer", *ALL, queues=["mail"])),
        guarded.client(create(guarded.sql, "projector", *ALL, project="p")),
    )
    register(made.admin, "a", queues=["default", "mail"])
    return made


@pytest.fixture(autouse=True)
def empty(guarded: Closed) -> None:
    guarded.sql.execute("truncate treadle.tasks, treadle.dags, treadle.events cascade")


def own(kind: str) -> dict[str, Any]:
    return {"queue": "mail"} if kind == "mail" else {"project": "p"}


def make_dag(http: httpx2.Client, *tasks: dict[str, Any]) -> httpx2.Response:
    return http.post(
        "/v1/dags", json={"name": "d", "tasks": [{"type": "code", **t} for t in tasks]}
    )


@pytest.mark.parametrize("kind", BOUND)
def test_a_dag_elsewhere_is_neither_seen_nor_touched(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    mine = make_dag(callers.admin, own(kind)).json()["id"]
    mixed = make_dag(callers.admin, own(kind), {"name": "other"}).json()["id"]
    other = make_dag(callers.admin, {}).json()["id"]

    listed = [row["id"] for row in caller.get("/v1/dags").json()["items"]]
    assert listed == [mine]
    assert caller.get(f"/v1/dags/{mine}").status_code == 200
    for dag in (mixed, other):
        for part in ("", "/tasks"):
            assert code_of(caller.get(f"/v1/dags/{dag}{part}")) == FORBIDDEN
        for verb in ("start", "cancel", "retry"):
            assert code_of(caller.post(f"/v1/dags/{dag}/{verb}")) == FORBIDDEN
        assert callers.admin.get(f"/v1/dags/{dag}").json()["status"] == "running"
    assert caller.post(f"/v1/dags/{mine}/cancel").status_code == 200


def test_a_token_for_a_queue_makes_dags_there_only(callers: Callers) -> None:
    assert make_dag(callers.mail, {"queue": "mail"}).status_code == 201
    assert code_of(make_dag(callers.mail, {"queue": "mail"}, {"name": "b"})) == FORBIDDEN
    plan = {"name": "d", "tasks": [{"type": "code"}], "defaults": {"queue": "mail"}}
    assert callers.mail.post("/v1/dags", json=plan).status_code == 201


def test_the_project_of_a_token_is_that_of_its_dags(callers: Callers, guarded: Closed) -> None:
    [task] = make_dag(callers.project, {}).json()["tasks"]
    assert status_of(callers.project, task) == "ready"
    assert code_of(make_dag(callers.project, {"project": "q"})) == FORBIDDEN
    row = guarded.sql.execute("select id from treadle.projects").fetchone()
    assert row is not None
    assert code_of(make_dag(callers.project, {"project_id": str(row[0])})) == FORBIDDEN


@pytest.mark.parametrize("kind", BOUND)
def test_a_letter_elsewhere_is_neither_seen_nor_decided_about(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    letters = [enqueue(callers.admin, max_attempts=1, **said) for said in (own(kind), {})]
    for _ in letters:
        act(callers.admin, take_one(callers.admin, queues=["default", "mail"]), "fail", error="no")
    mine, other = letters

    assert [row["task_id"] for row in caller.get("/v1/dead-letters").json()["items"]] == [mine]
    assert caller.get(f"/v1/dead-letters/{mine}").status_code == 200
    assert code_of(caller.get(f"/v1/dead-letters/{other}")) == FORBIDDEN
    for path, said in (
        (f"/v1/dead-letters/{other}/resolve", {}),
        ("/v1/dead-letters/resolve", {"ids": letters}),
        ("/v1/dead-letters/resolve", {"filter": {}}),
        ("/v1/dead-letters/resolve", {"filter": {"queue": "default"}}),
    ):
        answer = caller.post(path, json={"resolution": "cancel", **said})
        assert code_of(answer) == FORBIDDEN
    assert status_of(callers.admin, other) == "dead_lettered"

    moved = {"resolution": "modify", "changes": {"queue": "default"}}
    if kind == "mail":
        assert code_of(caller.post(f"/v1/dead-letters/{mine}/resolve", json=moved)) == FORBIDDEN
    done = caller.post(f"/v1/dead-letters/{mine}/resolve", json={"resolution": "cancel"})
    assert done.status_code == 200
    log = caller.get("/v1/dead-letters/log").json()["items"]
    assert [row["task_id"] for row in log] == [mine]


SHARED = [
    ("PUT", "/v1/types/code", {}),
    ("POST", "/v1/types/code/pause", None),
    ("GET", "/v1/gates", None),
    ("GET", "/v1/gates/g", None),
    ("PUT", "/v1/gates/g", {}),
    ("POST", "/v1/gates/g/close", None),
    ("POST", "/v1/gates/g/open", None),
    ("GET", "/v1/breakers", None),
    ("GET", "/v1/breakers/code", None),
    ("POST", "/v1/breakers/code/trip", None),
    ("POST", "/v1/breakers/code/reset", None),
    ("GET", "/v1/concurrency-keys", None),
    ("PUT", "/v1/concurrency-keys/k", {"limit": 1}),
    ("PUT", "/v1/budgets", {"scope": "all", "limit_usd": 1}),
    ("GET", "/v1/budgets", None),
    ("GET", "/v1/budgets/1", None),
    ("DELETE", "/v1/budgets/1", None),
    ("GET", "/v1/spend", None),
    ("GET", "/v1/triggers", None),
    ("GET", "/v1/triggers/t", None),
    ("GET", "/v1/triggers/t/log", None),
    ("PUT", "/v1/triggers/t", {"on": "x", "task": {"type": "code", "queue": "mail"}}),
    ("POST", "/v1/triggers/t/fire", {"event_id": 1}),
    ("DELETE", "/v1/triggers/t", None),
    ("POST", "/v1/events", {"event": "paid"}),
    ("POST", "/v1/webhooks/in/x", {}),
    ("GET", "/v1/webhooks", None),
    ("PUT", "/v1/webhooks/w", {"url": "https://example.org"}),
    ("POST", "/v1/webhooks/w/rotate", None),
    ("POST", "/v1/webhooks/w/test", None),
    ("DELETE", "/v1/webhooks/w", None),
    ("PUT", "/v1/queues/default", {}),
    ("POST", "/v1/queues/default/pause", None),
    ("GET", "/v1/queues/default/order", None),
    ("PUT", "/v1/retention/events", {"keep_s": 1}),
    ("PUT", "/v1/schedules/s", {"cron": "@daily", "task": {"type": "code"}}),
]


@pytest.mark.parametrize("kind", BOUND)
@pytest.mark.parametrize(("method", "path", "body"), SHARED)
def test_shared_objects_are_closed_to_restricted_tokens(
    callers: Callers, kind: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    caller = getattr(callers, kind)
    assert code_of(caller.request(method, path, json=body)) == FORBIDDEN


@pytest.mark.parametrize("kind", BOUND)
def test_a_rejection_does_not_reveal_where_a_task_is(callers: Callers, kind: str) -> None:
    callers.admin.put("/v1/queues/hidden", json={})
    said = {"queue": "hidden", "project": "veiled"}
    callers.admin.post("/projects", json={"name": "veiled"})
    task = enqueue(callers.admin, **said)
    dag = make_dag(callers.admin, said).json()["id"]
    nightly = {"cron": "@daily", "task": {"type": "code", **said}}
    assert callers.admin.put("/v1/schedules/veil", json=nightly).status_code == 200
    register(callers.admin, "h", queues=["hidden"])
    claim = take_one(callers.admin, "h", queues=["hidden"])

    caller = getattr(callers, kind)
    for answer in (
        *(caller.get(f"/v1/{path}") for path in (f"tasks/{task}", f"dags/{dag}", "schedules/veil")),
        act(caller, claim, "complete"),
    ):
        assert code_of(answer) == FORBIDDEN
        assert "not visible" in answer.json()["detail"]
        assert "hidden" not in answer.text
        assert "veiled" not in answer.text


def test_a_token_for_a_queue_runs_it(callers: Callers) -> None:
    assert callers.mail.post("/v1/queues/mail/pause").json()["paused"] is True
    assert callers.mail.post("/v1/queues/mail/resume").json()["paused"] is False
    assert [row["queue"] for row in callers.mail.get("/v1/queues").json()["items"]] == ["mail"]
    nightly = {"cron": "@daily", "task": {"type": "code", "queue": "mail"}}
    assert callers.mail.put("/v1/schedules/s", json=nightly).status_code == 200
    callers.admin.put("/v1/schedules/other", json={"cron": "@daily", "task": {"type": "code"}})
    assert [row["name"] for row in callers.mail.get("/v1/schedules").json()["items"]] == ["s"]
    moved = {"task": {"type": "code", "queue": "mail"}}
    assert code_of(callers.mail.put("/v1/schedules/other", json=moved)) == FORBIDDEN
    assert code_of(callers.mail.post("/v1/schedules/other/run")) == FORBIDDEN


def test_events_of_other_queues_are_not_seen(callers: Callers, guarded: Closed) -> None:
    token = create(guarded.sql, "listener", "read", queues=["mail"])
    with (
        guarded.client() as client,
        client.stream(
            "GET", "/v1/events/stream", params={"after": "0"}, headers=bearer(token)
        ) as answer,
    ):
        for queue in ("default", "mail"):
            task = enqueue(callers.admin, queue=queue)
            callers.admin.post(f"/v1/tasks/{task}/cancel")
        assert Stream(answer).events(1)[0]["queue"] == "mail"
    seen = callers.mail.get("/v1/events").json()["items"]
    assert [row["queue"] for row in seen] == ["mail"]
    assert code_of(callers.project.get("/v1/events/stream")) == FORBIDDEN
