"""No route is forgotten: each names its scope, and none answers without a token."""

import re
from typing import Any

import httpx2
import pytest

from tests.drivers.http.tokens import SCOPES, Closed, create
from treadle import Treadle
from treadle.api.access import PUBLIC_ROUTES, needs_of
from treadle.api.app import make_app
from treadle.api.auth import OPEN_PATHS

UNKNOWN_ID = "01890000-0000-7000-8000-00000000dead"
IMPLIED = {"read": {"operate"}}


ROUTES = list(needs_of(make_app(Treadle("postgresql://nowhere/nothing")).routes))
BEHIND = [
    (method, path, {str(needs.scope)} if needs else set())
    for method, path, needs in ROUTES
    if path not in PUBLIC_ROUTES
]


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", UNKNOWN_ID, path)


def asked(client: httpx2.Client, method: str, path: str) -> tuple[int, Any]:
    """The status of the answer to a request for a route, and its problem."""
    with client.stream(method, filled(path)) as answer:
        kind = answer.headers.get("content-type")
        body = answer.read() if kind == "application/problem+json" else b""
        problem = answer.json() if body and method != "HEAD" else None
        return answer.status_code, problem


@pytest.mark.requirement("B10")
def test_every_route_names_the_scope_that_it_needs() -> None:
    forgotten = [f"{method} {path}" for method, path, needed in BEHIND if not needed]

    assert len(BEHIND) > 20
    assert forgotten == []
    assert {each for _, _, needed in BEHIND for each in needed} <= set(SCOPES)


def test_public_paths_are_a_short_list_of_exact_read_only_paths() -> None:
    fixed = {path for path in OPEN_PATHS if not path.startswith(("/docs/", "/problems/"))}

    assert fixed == {"/", "/health", "/healthz", "/readyz", "/status", "/docs", "/problems"}
    assert not any("{" in path or path.endswith("/") for path in OPEN_PATHS - {"/"})
    open_routes = {(method, path) for method, path, _ in ROUTES if path in PUBLIC_ROUTES}
    assert {method for method, _ in open_routes} <= {"GET", "HEAD"}


@pytest.mark.requirement("B10")
def test_no_route_answers_without_a_token(guarded: Closed) -> None:
    with guarded.client() as anonymous:
        found = {
            f"{method} {path}": asked(anonymous, method, path)[0] for method, path, _ in BEHIND
        }

    assert {route: status for route, status in found.items() if status != 401} == {}


@pytest.mark.requirement("B10")
def test_no_route_answers_to_all_scopes_but_its_own(guarded: Closed) -> None:
    wrong: dict[str, Any] = {}
    for scope in SCOPES:
        others = [
            each
            for each in SCOPES
            if each not in {scope, "admin"} and each not in IMPLIED.get(scope, set())
        ]
        with guarded.client(create(guarded.sql, f"all-but-{scope}", *others)) as caller:
            for method, path, needed in BEHIND:
                if scope in needed:
                    status, problem = asked(caller, method, path)
                    if status != 403 or (problem and problem["scope"] != scope):
                        wrong[f"{method} {path}"] = (status, problem)

    assert wrong == {}


@pytest.mark.requirement("B10")
def test_every_change_by_an_operator_is_logged_with_the_name_of_the_token(guarded: Closed) -> None:
    acts = {
        (method, filled(path))
        for method, path, needed in BEHIND
        if needed & {"operate", "admin"} and method not in ("GET", "HEAD")
    }
    with guarded.client(create(guarded.sql, "ada", "admin")) as ada:
        for method, path in acts:
            asked(ada, method, path)

    lines = guarded.server.child.events("operation.requested", by="ada")
    assert len(acts) > 20
    assert {(line["method"], line["path"]) for line in lines} == acts


@pytest.mark.requirement("B10")
def test_the_event_of_a_drained_agent_names_the_token(guarded: Closed) -> None:
    with guarded.client(create(guarded.sql, "grace", "operate", "work")) as grace:
        grace.put("/v1/agents/coder", json={})
        assert grace.put("/v1/agents/coder/status", json={"status": "draining"}).is_success

    query = "select actor, data ->> 'by' from treadle.events where kind = 'agent.drain_started'"
    assert guarded.sql.execute(query).fetchall() == [("coder", "grace")]


@pytest.mark.requirement("B10")
def test_the_name_of_the_token_is_the_actor_of_what_it_defined_started_and_sent(
    guarded: Closed,
) -> None:
    dag = {"name": "d", "hold": True, "tasks": [{"name": "a", "type": "crawl"}]}
    with guarded.client(create(guarded.sql, "edsger", "admin")) as edsger:
        for path, settings in (
            ("/v1/queues/night", {"max_depth": 5}),
            ("/v1/types/crawl", {"timeout_s": 5}),
            ("/v1/gates/llm", {"limit": 5, "per_s": 60}),
        ):
            assert edsger.put(path, json=settings).is_success, path
        made = edsger.post("/v1/dags", json=dag)
        assert made.status_code == 201, made.text
        assert edsger.post(f"/v1/dags/{made.json()['id']}/start").is_success
        assert edsger.post("/v1/webhooks/in/stripe", json={"paid": True}).status_code == 202

    query = "select distinct kind from treadle.events where actor = 'edsger'"
    found = {kind for (kind,) in guarded.sql.execute(query)}
    assert found >= {
        *("queue.defined", "type.defined", "gate.defined", "dag.started", "webhook.received"),
    }


@pytest.mark.parametrize(
    "path",
    [
        *("/nowhere", "//", "/docs/", "/health/", "//health", "/health/../openapi.json"),
        *("/openapi.json?/health", "/healthz.json", "/docs/../openapi.json", "/status/x"),
        *("/problems/%2e%2e/openapi.json", "/HEALTH", "/healthz%00", "/x/healthz", "/docs/x.js"),
    ],
)
def test_a_path_similar_to_a_public_one_is_not_public(guarded: Closed, path: str) -> None:
    with guarded.client() as anonymous:
        # As it stands: a client would tidy the path.
        request = anonymous.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=path.encode())
        assert anonymous.send(request).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FLY"])
def test_an_open_path_is_open_for_reading_only(guarded: Closed, method: str) -> None:
    with guarded.client() as anonymous:
        assert anonymous.request(method, "/healthz").status_code == 401
        assert anonymous.get("/healthz").status_code == 200
