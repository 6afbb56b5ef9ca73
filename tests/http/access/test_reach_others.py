"""The responses to a restricted token reveal nothing about invisible objects."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.bound_tokens import FORBIDDEN, Callers
from tests.drivers.http.v1 import act, code_of, enqueue, take, take_one

# A task in reach of each token, and one that is not.
OWN: dict[str, dict[str, Any]] = {
    "mail": {"queue": "mail"},
    "agent": {"assigned_agent": "a"},
    "project": {"project": "p"},
}
ELSEWHERE: dict[str, dict[str, Any]] = {
    "mail": {"queue": "default"},
    "agent": {"assigned_agent": "b"},
    "project": {},
}
kinds = pytest.mark.parametrize("kind", OWN)


def made(callers: Callers, *tasks: dict[str, Any]) -> dict[str, Any]:
    plan = {"name": "d", "tasks": [{"type": "code", **task} for task in tasks]}
    answer = callers.admin.post("/v1/dags", json=plan)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def make_dag(callers: Callers, *tasks: dict[str, Any]) -> str:
    return str(made(callers, *tasks)["id"])


def waiting(callers: Callers, kind: str, *others: str) -> str:
    """A task in reach that depends on others."""
    [task] = made(callers, {"after": list(others), **OWN[kind]})["tasks"]
    return str(task)


def items(http: httpx2.Client, path: str) -> list[dict[str, Any]]:
    return list(http.get(path).json()["items"])


def reasons(http: httpx2.Client, task_id: str) -> dict[str, dict[str, Any]]:
    return {each["reason"]: each for each in items(http, f"/v1/tasks/{task_id}/why")}


@kinds
def test_a_list_has_the_dags_that_can_be_read_one_by_one(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    own, other = OWN[kind], ELSEWHERE[kind]
    dags = [make_dag(callers, *tasks) for tasks in ([own], [own, own], [own, other], [other])]
    row = callers.sql.execute("select treadle.open_dag('empty')").fetchone()
    assert row is not None
    dags.append(str(row[0]))

    read = [dag for dag in dags if caller.get(f"/v1/dags/{dag}").status_code == 200]

    # A DAG without tasks belongs to no queue or project.
    assert read == dags[:2]
    assert [each["id"] for each in items(caller, "/v1/dags")] == read[::-1]
    assert {each["id"] for each in items(callers.admin, "/v1/dags")} == set(dags)


def test_the_events_of_a_dag_are_visible_to_callers_that_see_it(callers: Callers) -> None:
    mine = make_dag(callers, {"assigned_agent": "a"})
    mixed = make_dag(callers, {"assigned_agent": "a"}, {"assigned_agent": "b"})

    for dag, seen in ((mine, ["dag.started"]), (mixed, [])):
        path = f"/v1/events?dag_id={dag}"
        assert [each["kind"] for each in items(callers.agent, path)] == seen
        assert [each["kind"] for each in items(callers.admin, path)] == ["dag.started"]


def test_the_visibility_of_a_task_event_depends_on_its_task_not_its_dag(callers: Callers) -> None:
    dag = make_dag(callers, {"assigned_agent": "a"}, {"assigned_agent": "b"})
    mine, theirs = (take_one(callers.admin, agent) for agent in "ab")
    for claim in (mine, theirs):
        act(callers.admin, claim, "ask", name="q", question="?")

    path = f"/v1/events?dag_id={dag}&kind=wait.opened"
    asked = [each["task_id"] for each in items(callers.admin, path)]
    assert asked == [theirs["id"], mine["id"]]
    assert [each["task_id"] for each in items(callers.agent, path)] == [mine["id"]]


@kinds
def test_a_task_that_waits_does_not_name_others_elsewhere(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    hidden = enqueue(callers.admin, type="research", **ELSEWHERE[kind])
    mine = enqueue(callers.admin, **OWN[kind])
    task = waiting(callers, kind, hidden, mine)

    said = reasons(caller, task)["dependencies"]
    whole = reasons(callers.admin, task)["dependencies"]

    assert said["sentence"] == "waiting for 2 of 2 dependencies"
    assert [each["id"] for each in said["detail"]["tasks"]] == [mine]
    assert (said["detail"]["open"], said["detail"]["all"]) == (2, 2)
    assert "research" in whole["sentence"]
    assert {each["id"] for each in whole["detail"]["tasks"]} == {hidden, mine}


@kinds
def test_a_dag_does_not_name_what_it_depends_on_elsewhere(callers: Callers, kind: str) -> None:
    [hidden] = made(callers, {"name": "secret", **ELSEWHERE[kind]})["tasks"]
    first = {"name": "first", "after": [hidden], **OWN[kind]}
    path = f"/v1/dags/{make_dag(callers, first, {'after': ['first'], **OWN[kind]})}/tasks"

    names = [
        [edge["name"] for task in items(http, path) for edge in task["depends_on"]]
        for http in (getattr(callers, kind), callers.admin)
    ]

    assert names == [[None, "first"], ["secret", "first"]]


@kinds
def test_a_task_names_only_visible_dependencies(callers: Callers, kind: str) -> None:
    mine = enqueue(callers.admin, **OWN[kind])
    task = waiting(callers, kind, mine)

    assert reasons(getattr(callers, kind), task) == reasons(callers.admin, task)


def test_the_holder_of_a_slot_is_not_named_to_other_queues(callers: Callers) -> None:
    hidden = enqueue(callers.admin, concurrency_key="k{0}")
    task = enqueue(callers.admin, concurrency_key="k{0}", queue="mail")
    assert take_one(callers.admin)["id"] == hidden

    said = reasons(callers.mail, task)["key_full"]

    assert said["sentence"] == "concurrency key k{0} is full: 1 of 1"
    assert said["detail"]["tasks"] == []
    assert "on agent a" in reasons(callers.admin, task)["key_full"]["sentence"]


def test_a_claim_repeated_for_another_queue_does_not_return_its_tasks(callers: Callers) -> None:
    token = str(uuid4())
    task = enqueue(callers.admin, spec={"secret": 1})
    asked: dict[str, Any] = {"queues": ["default"], "token": token}
    assert take_one(callers.admin, **asked)["id"] == task

    assert take(callers.mail, queues=["mail"], token=token) == []
    assert code_of(callers.mail.post("/v1/claims", json={"agent": "a", **asked})) == FORBIDDEN
    assert take_one(callers.admin, **asked)["id"] == task


def test_a_list_has_the_projects_that_have_a_task_in_reach(callers: Callers) -> None:
    made = {
        name: str(callers.admin.post("/projects", json={"name": name}).json()["id"])
        for name in ("in-mail", "in-default", "of-b", "unused")
    }
    for project, task in (
        ("in-mail", {"queue": "mail", "assigned_agent": "b"}),
        ("in-default", {}),
        ("of-b", {"assigned_agent": "b"}),
    ):
        enqueue(callers.admin, project_id=made[project], **task)

    for caller, seen in (
        (callers.admin, [*made]),
        (callers.mail, ["in-mail"]),
        (callers.agent, ["in-default"]),
        (callers.project, []),
    ):
        listed = {each["name"] for each in caller.get("/projects").json()}
        read = [name for name in made if caller.get(f"/projects/{made[name]}").status_code == 200]
        assert listed & made.keys() == set(seen)
        assert read == seen
    [own] = callers.project.get("/projects").json()
    assert own["name"] == "p"
    assert code_of(callers.mail.get(f"/projects/{made['unused']}")) == FORBIDDEN


def test_a_list_has_the_agents_that_a_token_has_to_do_with(callers: Callers) -> None:
    enqueue(callers.admin, project="p", assigned_agent="b")

    for caller, seen in (
        (callers.admin, ["a", "b", "m"]),
        (callers.mail, ["a", "b", "m"]),
        (callers.agent, ["a"]),
        (callers.project, ["b"]),
    ):
        assert [each["agent_id"] for each in items(caller, "/v1/agents")] == seen
        read = [each for each in "abm" if caller.get(f"/v1/agents/{each}").status_code == 200]
        assert read == seen


def test_only_an_operator_creates_tasks_in_the_name_of_others(callers: Callers) -> None:
    for said, status in ((None, 201), ("worker", 201), ("somebody", 403)):
        task = {"queue": "mail", "type": "code"} | ({"created_by": said} if said else {})
        alone = callers.worker.post("/v1/tasks", json=task)
        many = callers.worker.post("/v1/tasks/batch", json={"tasks": [task]})
        assert (alone.status_code, many.status_code) == (status, status)
        if status == 201:
            shown = callers.admin.get(alone.headers["location"]).json()
            assert shown["created_by"] == "worker"
    assert len(items(callers.admin, "/v1/tasks")) == 4

    item = {"type": "x", "description": "y", "created_by": "somebody"}
    assert code_of(callers.producer.post("/work", json=item)) == FORBIDDEN
    assert callers.admin.post("/work", json=item).json()["created_by"] == "somebody"
    own = callers.agent.post("/v1/tasks", json={"type": "code", "created_by": "a"})
    assert own.status_code == 201
