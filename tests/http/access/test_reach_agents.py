"""A token of an agent sees only its own tasks, and cannot manage agents."""

from urllib.parse import quote

import httpx2
import pytest

from tests.drivers.http.bound_tokens import FORBIDDEN, Callers
from tests.drivers.http.v1 import act, code_of, enqueue, register, status_of, take_one

URL = quote("http://agent-1:9000", safe="")


def ids(http: httpx2.Client, path: str, name: str = "id") -> set[str]:
    return {row[name] for row in http.get(path).json()["items"]}


def status_of_agent(callers: Callers, agent: str) -> str:
    return str(callers.admin.get(f"/v1/agents/{agent}").json()["status"])


def test_lists_leave_out_what_other_agents_have(callers: Callers) -> None:
    held, theirs, mine, free = (
        enqueue(callers.admin, assigned_agent=agent, priority=priority)
        for agent, priority in ((None, 0), ("b", 50), ("a", 50), (None, 50))
    )
    assert take_one(callers.admin, "b")["id"] == held

    assert ids(callers.agent, "/v1/tasks?queue=default") == {mine, free}
    assert ids(callers.admin, "/v1/tasks") == {held, theirs, mine, free}


def test_a_claim_of_an_agent_is_closed_to_other_agents(callers: Callers) -> None:
    task = enqueue(callers.admin)
    take_one(callers.admin, "a")
    callers.sql.execute("update treadle.tasks set assigned_agent = 'b'")
    assert ids(callers.agent, "/v1/tasks") == {task}
    assert callers.agent.get(f"/v1/tasks/{task}").status_code == 200


@pytest.mark.parametrize("taken", [False, True], ids=["assigned", "taken"])
def test_a_task_of_another_agent_is_neither_seen_nor_touched(callers: Callers, taken: bool) -> None:
    task = enqueue(callers.admin, assigned_agent=None if taken else "b")
    if taken:
        take_one(callers.admin, "b")
    before = status_of(callers.admin, task)

    for part in ("", "/why", "/attempts", "/steps", "/artifacts", "/events", "/result"):
        assert code_of(callers.agent.get(f"/v1/tasks/{task}{part}")) == FORBIDDEN
    for verb, body in (
        ("cancel", {}),
        ("retry", {}),
        ("release", {}),
        ("fork", {"from_step": "s"}),
    ):
        answer = callers.agent.post(f"/v1/tasks/{task}/{verb}", json=body)
        assert code_of(answer) == FORBIDDEN
    assert status_of(callers.admin, task) == before


def test_letters_and_events_of_other_agents_are_not_seen(callers: Callers) -> None:
    theirs, mine = (enqueue(callers.admin, assigned_agent=agent, max_attempts=1) for agent in "ba")
    for agent in "ba":
        act(callers.admin, take_one(callers.admin, agent), "fail", error="no")

    assert ids(callers.agent, "/v1/dead-letters", "task_id") == {mine}
    assert ids(callers.agent, "/v1/events", "task_id") == {mine}
    assert code_of(callers.agent.get(f"/v1/dead-letters/{theirs}")) == FORBIDDEN
    for said in ({"ids": [theirs]}, {"filter": {"queue": "default"}}):
        answer = callers.agent.post(
            "/v1/dead-letters/resolve", json={"resolution": "cancel", **said}
        )
        assert code_of(answer) == FORBIDDEN
    assert status_of(callers.admin, theirs) == "dead_lettered"


def test_a_dag_with_tasks_of_other_agents_is_not_touched(callers: Callers) -> None:
    mixed, theirs, free = (
        callers.admin.post(
            "/v1/dags",
            json={
                "name": "d",
                "tasks": [{"type": "code", "assigned_agent": agent} for agent in agents],
            },
        ).json()["id"]
        for agents in (("a", "b"), ("b",), (None,))
    )
    assert ids(callers.agent, "/v1/dags") == {free}
    for dag in (mixed, theirs):
        assert code_of(callers.agent.get(f"/v1/dags/{dag}")) == FORBIDDEN
        assert code_of(callers.agent.post(f"/v1/dags/{dag}/cancel")) == FORBIDDEN
    assert callers.agent.post(f"/v1/dags/{free}/cancel").status_code == 200


def test_whole_queues_are_not_for_the_token_of_an_agent(callers: Callers) -> None:
    task = enqueue(callers.admin, assigned_agent="b")
    for path in ("/v1/queues/default/order", "/v1/stuck", "/v1/events/stream"):
        assert code_of(callers.agent.get(path)) == FORBIDDEN
    asked = {"action": "cancel", "filter": {"queue": "default"}}
    assert code_of(callers.agent.post("/v1/tasks/bulk", json=asked)) == FORBIDDEN
    assert code_of(callers.agent.get("/v1/dead-letters/groups")) == FORBIDDEN
    assert status_of(callers.admin, task) == "ready"


@pytest.mark.parametrize("kind", ["agent", "project"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/queues/default", {"max_depth": 1}),
        ("POST", "/v1/queues/default/pause", None),
        ("POST", "/v1/queues/default/resume", None),
        ("PUT", "/v1/retention/events", {"keep_s": 1}),
    ],
)
def test_a_token_of_an_agent_cannot_change_shared_objects_of_a_queue(
    callers: Callers, kind: str, method: str, path: str, body: object
) -> None:
    paths = ("/v1/queues/default", "/v1/retention")
    before = [callers.admin.get(each).json() for each in paths]

    assert code_of(getattr(callers, kind).request(method, path, json=body)) == FORBIDDEN
    assert [callers.admin.get(each).json() for each in paths] == before


@pytest.mark.parametrize("kind", ["mail", "project"])
def test_an_agent_elsewhere_is_not_changed_or_stopped(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    callers.sql.execute("select treadle.register_agent('none', p_queues => '{}')")
    for agent in ("a", "b", "none"):
        queues = {"queues": ["mail"]}
        assert code_of(caller.put(f"/v1/agents/{agent}", json=queues)) == FORBIDDEN
        for verb in ("heartbeat", "leave"):
            assert code_of(caller.post(f"/v1/agents/{agent}/{verb}")) == FORBIDDEN
        drained = caller.put(f"/v1/agents/{agent}/status", json={"status": "draining"})
        assert code_of(drained) == FORBIDDEN
        assert status_of_agent(callers, agent) == "active"


def test_an_agent_of_its_queue_is_a_tokens_own(callers: Callers) -> None:
    register(callers.mail, "m", queues=["mail"])
    assert callers.mail.post("/v1/agents/m/heartbeat").status_code == 200
    assert callers.mail.put("/v1/agents/m/status", json={"status": "draining"}).status_code == 200
    assert callers.mail.post("/v1/agents/m/leave").status_code == 200
    assert status_of_agent(callers, "m") == "offline"


def test_an_agent_named_by_its_address_is_found(callers: Callers) -> None:
    http = callers.admin
    register(http, URL)

    assert http.get(f"/v1/agents/{URL}").json()["agent_id"] == "http://agent-1:9000"
    assert http.post(f"/v1/agents/{URL}/heartbeat").json()["status"] == "active"
    drained = http.put(f"/v1/agents/{URL}/status", json={"status": "draining"})
    assert drained.json() == {"id": "http://agent-1:9000", "status": "draining"}
    assert http.post(f"/v1/agents/{URL}/leave").json()["status"] == "offline"
