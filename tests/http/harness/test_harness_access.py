"""Permissions of the harness protocol: by scope, and by the agent of a token."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.tokens import Closed, closed, create
from treadle.client import Forbidden, HarnessClient, Unauthenticated

ME = "http://agent-1:9000"
OTHER = "http://agent-2:9000"


@pytest.fixture(scope="module")
def server(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("harness")) as made:
        yield made


def put(server: Closed, url: str) -> str:
    with server.client(server.tokens["enqueue"]) as http:
        answer = http.post("/harness/tasks", json={"agent_url": url, "payload": {}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["task_id"])


@pytest.mark.requirement("H3")
def test_a_token_of_an_agent_is_for_its_own_tasks_only(server: Closed) -> None:
    mine, theirs = put(server, ME), put(server, OTHER)
    token = create(server.sql, "mine", "work", "read", agent=ME, queues=["harness"])
    with HarnessClient(server.server.url, OTHER, token) as other, pytest.raises(Forbidden):
        other.next_task()
    with HarnessClient(server.server.url, ME, token) as client:
        task = client.next_task()
        assert task is not None
        assert task.task_id == mine
        assert client.next_task() is None
        client.complete_task(mine, {"n": 1})
    with server.client(server.tokens["work"]) as anybody:
        claim = {"agent_url": OTHER, "claim_token": str(uuid4())}
        assert anybody.post("/harness/next", json=claim).json()["task_id"] == theirs

    # With the right token of the claim, too: it is the row that says whose it is.
    body: dict[str, Any] = {**claim, "agent_url": ME, "decision": {}, "error": "no"}
    with server.client(token) as http:
        for verb in ("heartbeat", "complete", "fail"):
            answer = http.post(f"/harness/tasks/{theirs}/{verb}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            assert OTHER not in answer.text
        shown = http.get(f"/harness/tasks/{theirs}")
        assert shown.status_code == 403
        assert OTHER not in shown.text
        assert http.get(f"/harness/tasks/{mine}").json()["status"] == "completed"


ROUTES = {
    ("POST", "/harness/tasks"): "enqueue",
    ("GET", "/harness/tasks/{id}"): "read",
    ("POST", "/harness/next"): "work",
    ("POST", "/harness/tasks/{id}/heartbeat"): "work",
    ("POST", "/harness/tasks/{id}/complete"): "work",
    ("POST", "/harness/tasks/{id}/fail"): "work",
    ("POST", "/harness/result"): "work",
}


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_each_request_needs_its_scope(server: Closed, method: str, path: str) -> None:
    where = path.replace("{id}", put(server, ME))
    body: dict[str, Any] = {
        "agent_url": ME,
        "payload": {},
        "claim_token": str(uuid4()),
        "decision": {},
        "error": "no",
    }
    needed = ROUTES[method, path]
    for scope, token in server.tokens.items():
        allowed = scope in (needed, "admin") or (needed, scope) == ("read", "operate")
        with server.client(token) as http:
            status = http.request(method, where, json=body).status_code
        assert (status != 403) == allowed, (scope, status)
    with server.client() as anonymous:
        assert anonymous.request(method, where, json=body).status_code == 401


def test_a_token_for_other_queues_is_refused(server: Closed) -> None:
    token = create(server.sql, "mail-only", "work", "enqueue", "read", queues=["mail"])
    task_id = put(server, ME)
    with server.client(token) as http:
        for method, path in ROUTES:
            body = {"agent_url": ME, "payload": {}, "claim_token": str(uuid4()), "decision": {}}
            where = path.replace("{id}", task_id)
            answer = http.request(method, where, json={**body, "error": "no"})
            assert answer.status_code == 403, path


def test_a_token_for_one_project_is_refused(server: Closed) -> None:
    server.sql.execute("select treadle.define_project('site')")
    token = create(server.sql, "site-only", "work", "enqueue", "read", project="site")
    task_id = put(server, ME)
    body: dict[str, Any] = {"agent_url": ME, "payload": {}, "claim_token": str(uuid4())}
    with server.client(token) as http:
        for method, path in ROUTES:
            where = path.replace("{id}", task_id)
            answer = http.request(method, where, json={**body, "decision": {}, "error": "no"})
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_slash_at_the_end_of_the_agent_of_a_token_does_not_count(
    server: Closed, slash: str
) -> None:
    url = f"http://slash{len(slash)}:9000"
    task_id = put(server, url)
    token = create(server.sql, f"slash{len(slash)}", "work", "read", agent=url + slash)
    body = {"agent_url": url + slash, "claim_token": str(uuid4())}
    with server.client(token) as http:
        assert http.post("/harness/next", json=body).json()["task_id"] == task_id
        assert http.get(f"/harness/tasks/{task_id}").status_code == 200
        done = http.post(f"/harness/tasks/{task_id}/complete", json={**body, "decision": {}})
        assert done.status_code == 200
        assert http.post("/harness/next", json={**body, "agent_url": ME}).status_code == 403


def test_an_invalid_claim_token_is_rejected(server: Closed) -> None:
    wrong = f"trd_{'0' * 12}_{'x' * 49}"
    for token in (None, wrong):
        with HarnessClient(server.server.url, ME, token) as client:
            with pytest.raises(Unauthenticated) as raised:
                client.next_task()
            assert raised.value.status == 401
