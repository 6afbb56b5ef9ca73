"""Every route, called with every kind of token, answers as the checked-in table says.

`access_matrix.txt` has a line for each route: what it needs, and what each token gets. `own` is in
the queue mail, in the project p and for the agent; `other` is in another queue, another project and
for another agent. The tokens have all scopes and differ in what they are restricted to:

    own other  both objects can be reached; `own` or `other` if only that one, `-` if none
    yes no     for routes that name no object
    3          the number of items in a list

After a change that is meant: TREADLE_WRITE_MATRIX=1 pytest tests/http/test_access_matrix.py
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.tokens import SCOPES, closed, create
from tests.drivers.http.v1 import act, enqueue, register, take_one
from treadle import Treadle
from treadle.api.access import PUBLIC_ROUTES, needs_of
from treadle.api.app import make_app

TABLE = Path(__file__).with_name("access_matrix.txt")
AGENT, OTHER_AGENT = "http://a", "http://b"
TOKENS: dict[str, dict[str, Any]] = {
    "unrestricted": {},
    "queue": {"queues": ["mail"]},
    "agent": {"agent": AGENT},
    "project": {"project": "p"},
    "wrong-queue": {"queues": ["empty"]},
}
ROUTES = [
    (method, path, needs)
    for method, path, needs in needs_of(make_app(Treadle("postgresql://nowhere/nothing")).routes)
    if path not in PUBLIC_ROUTES and needs is not None
]
Values = dict[str, str]


def furnish(http: httpx2.Client, sql: Any, said: dict[str, Any], agent: str) -> Values:
    """Objects of every kind that belong to a queue, a project and an agent."""
    queue, project = said["queue"], said["project"]
    assigned = {**said, "assigned_agent": agent}
    register(http, quote(agent, safe=""), queues=[queue])

    def claimed(**more: Any) -> Any:
        task_id = enqueue(http, **assigned, **more)
        claim = take_one(http, agent, queues=[queue])
        assert claim["id"] == task_id
        return claim

    gone = claimed()
    assert act(http, gone, "complete").status_code == 200
    sql.execute("select treadle.define_queue(%s, '{\"keep_completed_s\": 0}')", [queue])
    sql.execute("select * from treadle.prune_tasks()")
    letter = claimed(max_attempts=1)
    assert act(http, letter, "fail", error="no").status_code == 200
    held = claimed()
    wait = act(http, held, "ask", name="q", question="?").json()["wait_id"]
    file = act(http, held, "artifacts", name="f", uri="file:///f").json()["id"]
    claim = claimed()
    plan = {"name": "d", "tasks": [{"type": "code", **assigned}]}
    dag = http.post("/v1/dags", json=plan).json()["id"]
    nightly = {"cron": "@daily", "task": {"type": "code", "queue": queue}}
    assert http.put(f"/v1/schedules/{queue}", json=nightly).status_code == 200
    project_id = next(row["id"] for row in http.get("/projects").json() if row["name"] == project)
    item = {"type": "x", "description": "y", "project_id": project_id, "assigned_agent": agent}
    work = http.post("/work", json=item).json()["id"]
    asked = {"agent_url": agent, "payload": {}}
    harness = http.post("/harness/tasks", json=asked).json()["task_id"]
    return {
        "agent": agent,
        "project": project,
        "task_id": held["id"],
        "claim_id": claim["id"],
        "token": claim["token"],
        "harness_id": harness,
        "archived_id": gone["id"],
        "dag_id": dag,
        "letter_id": letter["id"],
        "wait_id": wait,
        "artifact_id": file,
        "queue": queue,
        "agent_id": quote(agent, safe=""),
        "name": queue,
        "item_id": work,
        "project_id": project_id,
    }


def path_of(path: str, values: Values) -> str:
    """The path of a route with the values of an object in it."""
    aliases = {
        "/v1/claims": {"task_id": "claim_id"},
        "/harness": {"task_id": "harness_id"},
        "/v1/history": {"task_id": "archived_id"},
    }
    names = next((each for start, each in aliases.items() if path.startswith(start)), {})

    def value(match: re.Match[str]) -> str:
        name = names.get(match[1], match[1])
        return values.get(name, "1")

    return re.sub(r"\{(\w+)[^}]*\}", value, path)


def body_of(method: str, path: str, of: Values) -> Any:
    """A body that names the object; without one, a body that every route rejects after access."""
    task = {"type": "code", "queue": of["queue"], "project": of["project"]}
    claim = {"token": of["token"]}
    named = {"id": of["claim_id"], **claim}
    agent = {"agent": of["agent"], "queues": [of["queue"]], "types": ["none"]}
    filters = {"filter": {"queue": of["queue"]}, "dry_run": True}
    bodies: dict[str, Any] = {
        "POST /v1/tasks": task,
        "POST /v1/tasks/batch": {"tasks": [task]},
        "POST /v1/dags": {"name": "d", "tasks": [task]},
        "POST /v1/tasks/bulk": {"action": "cancel", **filters},
        "POST /v1/dead-letters/resolve": {"resolution": "cancel", **filters},
        "POST /v1/claims": agent,
        "POST /v1/claims/heartbeat": {"claims": [named]},
        "POST /v1/claims/complete": {"claims": [named]},
        "POST /v1/claims/{task_id}/steps": {**claim, "name": "s", "output": 1},
        "POST /v1/claims/{task_id}/spend": {**claim, "calls": [{"usd": 0}]},
        "POST /v1/claims/{task_id}/reserve": {**claim, "usd": 0},
        "POST /v1/claims/{task_id}/ask": {**claim, "name": "e", "event": "x"},
        "POST /v1/claims/{task_id}/spawn": {**claim, "name": "n", "tasks": [task]},
        "POST /v1/claims/{task_id}/artifacts": {**claim, "name": "g", "uri": "file:///g"},
        "PUT /v1/agents/{agent_id:path}": {"queues": [of["queue"]]},
        "POST /harness/next": {"agent_url": of["agent"], "claim_token": of["token"]},
        "POST /work": {"type": "x", "description": "y", "project_id": of["project_id"]},
        "PATCH /work/{item_id}": {"notes": "x"},
        "PUT /v1/schedules/{name:path}": {
            "cron": "@daily",
            "task": {"type": "code", "queue": of["queue"]},
        },
    }
    route = f"{method} {path}"
    if route not in bodies and path.startswith("/v1/claims/"):
        return claim
    return bodies.get(route, [])


def is_allowed(http: httpx2.Client, method: str, path: str, of: Values) -> bool:
    params = {"agent_url": of["agent"]} if path == "/v1/harness/nudging" else None
    body = None if method == "GET" else body_of(method, path, of)
    with http.stream(method, path_of(path, of), json=body, params=params) as answer:
        assert answer.status_code < 500 or answer.status_code == 503, (method, path)
        # Lists show no agents out of reach; reading one says that there is none.
        hidden = path == "/v1/agents/{agent_id:path}" and method == "GET"
        return answer.status_code != (404 if hidden else 403)


def listed(http: httpx2.Client, path: str) -> str | None:
    """The number of items in a list; None for what is no list."""
    if "{" in path or path in ("/v1/events/stream", "/openapi.json", "/v1/spend"):
        return None
    answer = http.get(path)
    if answer.status_code == 403:
        return "no"
    found = answer.json()
    if isinstance(found, dict):
        found = found.get("items", found.get("tasks"))
    return str(len(found))


def outcome(
    http: httpx2.Client, method: str, path: str, own: Values, other: Values, refill: Any
) -> str:
    if method == "GET" and (count := listed(http, path)) is not None:
        return count
    reached = []
    for name, of in (("own", own), ("other", other)):
        refill()
        if is_allowed(http, method, path, of):
            reached.append(name)
    is_named = path_of(path, own) != path_of(path, other) or (
        body_of(method, path, own) != body_of(method, path, other)
    )
    if is_named:
        return " ".join(reached) or "-"
    return "yes" if reached else "no"


@pytest.fixture(scope="module")
def matrix(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[list[str]]]:
    with closed(new_database, tmp_path_factory.mktemp("matrix")) as server:
        admin, sql = server.client(server.tokens["admin"]), server.sql
        for queue in ("mail", "empty"):
            sql.execute("select treadle.define_queue(%s)", [queue])
        for project in "pq":
            assert admin.post("/projects", json={"name": project}).status_code == 201
        own = furnish(admin, sql, {"queue": "mail", "project": "p"}, AGENT)
        other = furnish(admin, sql, {"queue": "default", "project": "q"}, OTHER_AGENT)
        callers = {
            name: server.client(create(sql, name, *SCOPES, **said)) for name, said in TOKENS.items()
        }

        def refill() -> None:
            """Schedules that a caller has deleted."""
            for queue in ("mail", "default"):
                nightly = f'{{"cron": "@daily", "task": {{"type": "code", "queue": "{queue}"}}}}'
                sql.execute("select treadle.define_schedule(%s, %s)", [queue, nightly])

        # Lists first: what follows adds to them.
        order = sorted(ROUTES, key=lambda each: each[0] != "GET")
        found = {
            (method, path): [
                outcome(http, method, path, own, other, refill) for http in callers.values()
            ]
            for method, path, _ in order
        }
        yield [
            [f"{method} {path}", str(needs.scope), needs.kind, *found[method, path]]
            for method, path, needs in ROUTES
        ]


def written(rows: list[list[str]]) -> str:
    """The rows with their columns one below the other."""
    table = [["route", "scope", "kind", *TOKENS], *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return "\n".join(lines) + "\n"


@pytest.mark.requirement("B10")
def test_every_route_answers_every_token_as_the_table_says(matrix: list[list[str]]) -> None:
    found = written(matrix)
    if os.environ.get("TREADLE_WRITE_MATRIX"):
        TABLE.write_text(found)

    assert found.splitlines() == TABLE.read_text().splitlines()


@pytest.mark.requirement("B10")
def test_a_token_for_another_queue_reaches_no_object_of_a_queue(matrix: list[list[str]]) -> None:
    reached = {row[0]: row[-1] for row in matrix if "own" in row[-1] or "other" in row[-1]}

    # What is left belongs to no queue.
    assert reached == {"GET /v1/types/{name:path}": "own other"}
