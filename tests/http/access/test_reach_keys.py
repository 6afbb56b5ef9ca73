"""A key of an invisible object is in use; a restricted token does not learn by what."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.bound_tokens import Callers
from tests.drivers.http.v1 import code_of, enqueue, take, take_one

TAKEN = (409, "conflict")
MAIL = {"type": "code", "queue": "mail", "idempotency_key": "k"}
HEADERS = [{}, {"Idempotency-Key": "once"}]


def check_taken(answer: httpx2.Response, hidden: str) -> None:
    assert code_of(answer) == TAKEN
    assert hidden not in answer.text
    assert "another key" in answer.json()["hint"]


@pytest.mark.parametrize("headers", HEADERS, ids=["alone", "kept"])
def test_the_key_of_a_task_elsewhere_does_not_tell_its_id(
    callers: Callers, headers: dict[str, str]
) -> None:
    other = enqueue(callers.admin, idempotency_key="k")
    check_taken(callers.mail.post("/v1/tasks", json=MAIL, headers=headers), other)


@pytest.mark.parametrize("headers", HEADERS, ids=["alone", "kept"])
def test_a_batch_with_the_key_of_a_task_elsewhere_makes_nothing(
    callers: Callers, headers: dict[str, str]
) -> None:
    other = enqueue(callers.admin, idempotency_key="k")
    batch = {"tasks": [{**MAIL, "idempotency_key": "new"}, MAIL]}

    check_taken(callers.mail.post("/v1/tasks/batch", json=batch, headers=headers), other)

    assert len(callers.admin.get("/v1/tasks").json()["items"]) == 1


def test_a_repeat_gets_the_task_that_is_in_reach(callers: Callers) -> None:
    first = enqueue(callers.admin, queue="mail", idempotency_key="k")
    again = callers.mail.post("/v1/tasks", json=MAIL)
    assert (again.status_code, again.json()) == (200, {"id": first, "created": False})
    batch = callers.mail.post("/v1/tasks/batch", json={"tasks": [MAIL]})
    assert batch.json()["items"] == [{"id": first, "created": False}]


def test_an_agent_may_repeat_an_enqueue_after_another_agent_claimed_the_task(
    callers: Callers,
) -> None:
    first = enqueue(callers.agent, idempotency_key="k")
    assert take_one(callers.admin, "b")["id"] == first
    again = callers.agent.post("/v1/tasks", json={"type": "code", "idempotency_key": "k"})
    assert again.json() == {"id": first, "created": False}


@pytest.mark.parametrize("headers", HEADERS, ids=["alone", "kept"])
@pytest.mark.parametrize("name", ["code", "other"])
def test_the_key_of_a_dag_elsewhere_does_not_tell_its_id(
    callers: Callers, name: str, headers: dict[str, str]
) -> None:
    plan = {"name": "d", "key": "k", "tasks": [{"type": "code", "name": "code"}]}
    other = callers.admin.post("/v1/dags", json=plan).json()["id"]
    mine = {**plan, "tasks": [{"type": "code", "name": name, "queue": "mail"}]}
    check_taken(callers.mail.post("/v1/dags", json=mine, headers=headers), other)


def test_a_repeat_gets_the_dag_that_is_in_reach(callers: Callers) -> None:
    plan = {"name": "d", "key": "k", "tasks": [{"type": "code", "queue": "mail"}]}
    first, again = (http.post("/v1/dags", json=plan) for http in (callers.admin, callers.mail))
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])


@pytest.mark.parametrize(("name", "status"), [("code", 200), ("other", 422)])
def test_many_repeats_at_once_are_all_answered(callers: Callers, name: str, status: int) -> None:
    """More than the server has connections: one that holds a connection must not need another."""
    plan = {"name": "d", "key": "k", "tasks": [{"type": "code", "name": "code", "queue": "mail"}]}
    first = callers.mail.post("/v1/dags", json=plan).json()["id"]
    again = {**plan, "tasks": [{"type": "code", "name": name, "queue": "mail"}]}

    def repeat(_: int) -> httpx2.Response:
        headers = {"Idempotency-Key": str(uuid4())}
        return callers.mail.post("/v1/dags", json=again, headers=headers)

    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(repeat, range(32)))

    assert {answer.status_code for answer in answers} == {status}
    assert all(first in answer.text for answer in answers)


@pytest.mark.parametrize("headers", HEADERS, ids=["alone", "kept"])
def test_the_key_of_a_node_does_not_open_a_task_elsewhere(
    callers: Callers, headers: dict[str, str]
) -> None:
    other = enqueue(callers.admin, idempotency_key="k")
    reader = {"type": "code", "queue": "mail", "inputs": {"given": "task:found:output"}}
    plan = {"name": "d", "tasks": [{**MAIL, "name": "found"}, {**reader, "name": "b"}]}

    check_taken(callers.mail.post("/v1/dags", json=plan, headers=headers), other)
    assert len(callers.admin.get("/v1/tasks").json()["items"]) == 1
    made = callers.admin.post("/v1/dags", json=plan)
    assert made.json()["tasks"][0] == other


def test_the_key_of_a_subtask_does_not_open_a_task_elsewhere(callers: Callers) -> None:
    other = enqueue(callers.admin, idempotency_key="k")
    own = enqueue(callers.admin, queue="mail", idempotency_key="own")
    parent = enqueue(callers.admin, queue="mail")
    [claim] = [
        each for each in take(callers.admin, "b", queues=["mail"], limit=5) if each["id"] == parent
    ]

    def spawn(*tasks: dict[str, str]) -> httpx2.Response:
        said = {"token": claim["token"], "name": "s", "tasks": tasks}
        return callers.mail.post(f"/v1/claims/{parent}/spawn", json=said)

    check_taken(spawn(MAIL), other)
    made = spawn({**MAIL, "idempotency_key": "own"}, {**MAIL, "idempotency_key": "new"})
    assert [each["created"] for each in made.json()["items"]] == [False, True]
    assert made.json()["items"][0]["id"] == own
    again = spawn(MAIL)
    assert [each["created"] for each in again.json()["items"]] == [False, False]


@pytest.mark.parametrize("option", ["after", "inputs"])
def test_a_task_cannot_depend_on_one_elsewhere(callers: Callers, option: str) -> None:
    other = enqueue(callers.admin)
    given = {"after": [other], "inputs": {"x": f"task:{other}:output"}}[option]
    said = {"type": "code", "queue": "mail", option: given}

    assert code_of(callers.mail.post("/v1/tasks", json=said)) == (403, "forbidden")
    batch = callers.mail.post("/v1/tasks/batch", json={"tasks": [said]})
    assert code_of(batch) == (403, "forbidden")
    assert callers.admin.post("/v1/tasks", json=said).status_code == 201
