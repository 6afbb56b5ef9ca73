"""A restricted token creates only tasks that it sees, with visible references and own settings."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.bound_tokens import FORBIDDEN, Callers, completed
from tests.drivers.http.v1 import act, code_of, enqueue, take_one

INVALID = (422, "invalid-argument")
MAIL: dict[str, Any] = {"type": "code", "queue": "mail"}
LIMITED = {"concurrency_key": "k", "concurrency_limit": 3}


def make(http: httpx2.Client, *tasks: dict[str, Any], **said: Any) -> httpx2.Response:
    return http.post("/v1/dags", json={"name": "d", "tasks": tasks, **said})


def spawn(http: httpx2.Client, claim: dict[str, Any], *tasks: dict[str, Any]) -> httpx2.Response:
    return act(http, claim, "spawn", name="s", tasks=tasks)


def working(callers: Callers) -> dict[str, Any]:
    """A claim of the caller of the queue mail."""
    enqueue(callers.mail, queue="mail")
    return take_one(callers.mail, "m", queues=["mail"])


def references(callers: Callers, task_id: str) -> list[dict[str, Any]]:
    """Every way to refer to a task that has a file."""
    [file] = callers.admin.get(f"/v1/tasks/{task_id}/artifacts").json()["items"]
    return [
        {"after": [task_id]},
        {"after": [{"task": task_id.upper(), "optional": True}]},
        {"inputs": {"x": f"task:{task_id}:output"}},
        {"inputs": {"x": f"task:{task_id}:output.key"}},
        {"inputs": {"x": f"task:{task_id}:artifact:f"}},
        {"inputs": {"x": f"artifact:{file['id']}"}},
    ]


def test_a_task_elsewhere_cannot_be_referred_to(callers: Callers) -> None:
    other = references(callers, completed(callers.admin))
    claim = working(callers)

    for ref in other:
        node = {**MAIL, **ref}
        assert code_of(make(callers.mail, node)) == FORBIDDEN, ref
        assert code_of(spawn(callers.mail, claim, node)) == FORBIDDEN, ref
        nightly = {"cron": "@daily", "dag": {"name": "d", "tasks": [node]}}
        assert code_of(callers.mail.put("/v1/schedules/n", json=nightly)) == FORBIDDEN, ref
        own = {"type": "code", "project": "p", **ref}
        assert code_of(make(callers.project, own)) == FORBIDDEN, ref
    assert len(callers.admin.get("/v1/tasks").json()["items"]) == 2


def test_a_task_in_reach_can_be_referred_to(callers: Callers) -> None:
    mine = references(callers, completed(callers.admin, {"key": 1}, queue="mail"))
    tasks = [{**MAIL, **ref} for ref in mine]

    assert make(callers.mail, *tasks).status_code == 201
    assert make(callers.mail, MAIL, {**MAIL, "after": ["code"]}).status_code == 201


def test_a_running_task_cannot_refer_to_a_name_of_its_dag_elsewhere(callers: Callers) -> None:
    first, second = {"name": "a", "type": "code"}, {**MAIL, "name": "b", "after": ["a"]}
    make(callers.admin, first, second)
    act(callers.admin, take_one(callers.admin, "a"), "complete", output="secret")
    claim = take_one(callers.mail, "m", queues=["mail"])

    other = {**MAIL, "name": "c", "inputs": {"x": "task:a:output"}}
    assert code_of(spawn(callers.mail, claim, other)) == FORBIDDEN
    own = {**MAIL, "name": "c"}, {**MAIL, "name": "d", "inputs": {"x": "task:c:output"}}
    assert spawn(callers.mail, claim, *own).status_code == 200


def test_a_running_task_does_not_wait_for_tasks_elsewhere(callers: Callers) -> None:
    other = enqueue(callers.admin)
    claim = working(callers)

    assert code_of(act(callers.mail, claim, "suspend", children=[other])) == FORBIDDEN
    [child] = spawn(callers.mail, claim, MAIL).json()["items"]
    assert act(callers.mail, claim, "suspend", children=[child["id"]]).status_code == 200


def test_an_agent_waits_for_its_subtasks_of_other_agents(callers: Callers) -> None:
    enqueue(callers.admin)
    claim = take_one(callers.agent, "a")
    spawned = {"type": "code", "assigned_agent": "b"}
    [child] = spawn(callers.agent, claim, spawned).json()["items"]
    assert take_one(callers.admin, "b")["id"] == child["id"]

    assert act(callers.agent, claim, "suspend", children=[child["id"]]).status_code == 200


def test_an_invisible_task_cannot_be_a_parent(callers: Callers) -> None:
    other = enqueue(callers.admin)
    task = {**MAIL, "parent_id": other}
    assert code_of(callers.mail.post("/v1/tasks", json=task)) == FORBIDDEN
    assert code_of(callers.mail.post("/v1/tasks/batch", json={"tasks": [task]})) == FORBIDDEN
    mine = enqueue(callers.mail, queue="mail")
    assert enqueue(callers.mail, queue="mail", parent_id=mine)


def test_types_and_queues_are_not_made_with_a_task(callers: Callers) -> None:
    claim = working(callers)
    sneaky = {**MAIL, "type": "new", "define": {}}

    assert code_of(spawn(callers.mail, claim, sneaky))[0] == 422
    assert code_of(make(callers.admin, sneaky))[0] == 422
    templates: list[dict[str, Any]] = [
        {"task": sneaky},
        {"dag": {"name": "d", "tasks": [sneaky]}},
        {"dag": {"name": "d", "tasks": [MAIL], "defaults": {"define": {}}}},
    ]
    for template in templates:
        schedule, trigger = {"cron": "@daily", **template}, {"on": "x", **template}
        assert code_of(callers.admin.put("/v1/schedules/n", json=schedule)) == INVALID
        assert code_of(callers.admin.put("/v1/triggers/t", json=trigger)) == INVALID
    assert callers.admin.get("/v1/types/new").status_code == 404


def test_a_queue_of_null_is_the_default_one(callers: Callers) -> None:
    nowhere = {**MAIL, "queue": None}
    assert code_of(make(callers.mail, nowhere, defaults={"queue": "mail"})) == FORBIDDEN
    assert code_of(spawn(callers.mail, working(callers), nowhere)) == FORBIDDEN

    letter = enqueue(callers.mail, queue="mail", max_attempts=1)
    act(callers.mail, take_one(callers.mail, "m", queues=["mail"]), "fail", error="no")
    asked = {"resolution": "modify", "changes": {"queue": None}}
    for path in (f"{letter}/resolve", "resolve"):
        ids = {"ids": [letter]} if path == "resolve" else {}
        answer = callers.mail.post(f"/v1/dead-letters/{path}", json={**asked, **ids})
        assert code_of(answer) == FORBIDDEN
    moved = {"changes": {"queue": None}}
    assert code_of(callers.mail.post(f"/v1/tasks/{letter}/retry", json=moved)) == FORBIDDEN


def test_a_project_of_null_is_not_that_of_the_token(callers: Callers) -> None:
    assert code_of(make(callers.project, {"type": "code", "project": None})) == FORBIDDEN


def test_subtasks_are_of_the_project_of_the_token(callers: Callers) -> None:
    callers.sql.execute("select treadle.define_project('q')")
    enqueue(callers.project)
    claim = take_one(callers.admin, "a")
    other = {"type": "code", "project": "q"}
    assert code_of(spawn(callers.project, claim, other)) == FORBIDDEN
    assert spawn(callers.project, claim, {"type": "code"}).status_code == 200


@pytest.mark.parametrize("caller", ["mail", "worker", "project", "producer"])
def test_the_limit_of_a_key_needs_operate_and_a_token_for_everything(
    callers: Callers, caller: str
) -> None:
    http = getattr(callers, caller)
    task = {**MAIL, **LIMITED} if caller != "project" else {"type": "code", **LIMITED}
    answers = [
        http.post("/v1/tasks", json=task),
        http.post("/v1/tasks/batch", json={"tasks": [task]}),
        make(http, task),
    ]
    if caller == "worker":
        answers.append(spawn(http, working(callers), task))
    assert {code_of(each) for each in answers} == {FORBIDDEN}
    assert "PUT /v1/concurrency-keys" in answers[0].json()["hint"]


def test_an_operator_can_set_the_limit_of_a_key_with_a_task(callers: Callers) -> None:
    assert enqueue(callers.admin, **LIMITED)
    assert enqueue(callers.agent, **LIMITED)
