"""Access of a restricted token is decided by the rows, not by the body of the request."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.tokens import Closed, closed, create
from tests.drivers.http.v1 import act, code_of, enqueue, register, status_of, take_one

ALL = ("read", "enqueue", "work", "operate")


@dataclass(frozen=True)
class Callers:
    """Clients with an admin token, and tokens for queue mail, agent a and project p."""

    admin: httpx2.Client
    mail: httpx2.Client
    agent: httpx2.Client
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
    sql = guarded.sql
    made = Callers(
        guarded.client(guarded.tokens["admin"]),
        guarded.client(create(sql, "mailer", *ALL, queues=["mail"])),
        guarded.client(create(sql, "one", *ALL, agent="a")),
        guarded.client(create(sql, "projector", *ALL, project="p")),
    )
    register(made.admin, "a")
    register(made.admin, "b")
    return made


@pytest.fixture(autouse=True)
def empty(guarded: Closed) -> None:
    guarded.sql.execute("truncate treadle.tasks cascade")


def test_a_token_for_a_queue_enqueues_there_only(callers: Callers) -> None:
    enqueue(callers.mail, queue="mail")
    assert code_of(callers.mail.post("/v1/tasks", json={"type": "code"})) == (403, "forbidden")
    both = {"tasks": [{"type": "code", "queue": "mail"}, {"type": "code"}]}
    assert code_of(callers.mail.post("/v1/tasks/batch", json=both)) == (403, "forbidden")
    assert len(callers.admin.get("/v1/tasks").json()["items"]) == 1


@pytest.mark.parametrize("kind", ["mail", "project"])
def test_a_task_elsewhere_is_neither_seen_nor_touched(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    other = enqueue(callers.admin)
    own = enqueue(callers.admin, **({"queue": "mail"} if kind == "mail" else {"project": "p"}))

    assert [each["id"] for each in caller.get("/v1/tasks").json()["items"]] == [own]
    for part in ("", "/why", "/attempts", "/steps", "/artifacts", "/events", "/result"):
        assert caller.get(f"/v1/tasks/{own}{part}").status_code in (200, 202)
        assert code_of(caller.get(f"/v1/tasks/{other}{part}")) == (403, "forbidden")
    for verb, body in (
        ("cancel", {}),
        ("retry", {}),
        ("release", {}),
        ("fork", {"from_step": "s"}),
    ):
        answer = caller.post(f"/v1/tasks/{other}/{verb}", json=body)
        assert code_of(answer) == (403, "forbidden")
    assert status_of(callers.admin, other) == "ready"
    assert caller.post(f"/v1/tasks/{own}/cancel").status_code == 200


def test_many_at_once_stay_within_the_queue(callers: Callers) -> None:
    task_id = enqueue(callers.admin, tags=["t"])
    for filters in ({"tag": "t"}, {"queue": "default"}):
        asked = {"action": "cancel", "filter": filters}
        assert code_of(callers.mail.post("/v1/tasks/bulk", json=asked)) == (403, "forbidden")
    asked = {"action": "cancel", "filter": {"queue": "mail"}}
    assert callers.mail.post("/v1/tasks/bulk", json=asked).status_code == 200
    assert code_of(callers.project.post("/v1/tasks/bulk", json=asked)) == (403, "forbidden")
    assert status_of(callers.admin, task_id) == "ready"


def test_a_task_cannot_be_moved_to_a_queue_elsewhere(callers: Callers) -> None:
    task_id = enqueue(callers.mail, queue="mail")
    callers.mail.post(f"/v1/tasks/{task_id}/cancel")
    moved = {"changes": {"queue": "default"}}
    assert code_of(callers.mail.post(f"/v1/tasks/{task_id}/retry", json=moved))[0] == 403
    forked = {"from_step": "s", **moved}
    assert code_of(callers.mail.post(f"/v1/tasks/{task_id}/fork", json=forked))[0] == 403


def test_a_token_of_an_agent_cannot_act_for_another_agent(callers: Callers) -> None:
    enqueue(callers.admin)
    for path, body in (
        ("/v1/claims", {"agent": "b"}),
        ("/v1/agents/b/heartbeat", None),
        ("/v1/agents/b/leave", None),
    ):
        assert code_of(callers.agent.post(path, json=body)) == (403, "forbidden")
    assert code_of(callers.agent.put("/v1/agents/b", json={})) == (403, "forbidden")
    assert take_one(callers.agent, "a")["attempt"] == 1


VERBS: list[tuple[str, dict[str, Any]]] = [
    ("start", {}),
    ("heartbeat", {}),
    ("complete", {}),
    ("fail", {}),
    ("release", {}),
    ("steps", {"name": "s", "output": 1}),
    ("spend", {"calls": [{"usd": 1}]}),
    ("reserve", {"usd": 1}),
    ("ask", {"name": "q", "question": "?"}),
    ("suspend", {}),
    ("spawn", {"name": "s", "tasks": [{"type": "code"}]}),
    ("artifacts", {"name": "n", "uri": "u"}),
]


@pytest.mark.parametrize("kind", ["mail", "agent", "project"])
def test_the_claim_of_another_cannot_be_used_even_with_its_token(
    callers: Callers, kind: str
) -> None:
    caller = getattr(callers, kind)
    task_id = enqueue(callers.admin)
    claim = take_one(callers.admin, "b")
    named = {"claims": [{"id": claim["id"], "token": claim["token"]}]}

    for verb, said in VERBS:
        assert code_of(act(caller, claim, verb, **said)) == (403, "forbidden")
    for verb in ("complete", "heartbeat"):
        assert code_of(caller.post(f"/v1/claims/{verb}", json=named)) == (403, "forbidden")

    assert status_of(callers.admin, task_id) == "running"


def test_an_agent_that_lost_its_claim_gets_only_claim_lost(
    guarded: Closed, callers: Callers
) -> None:
    enqueue(callers.admin, retry={"strategy": "immediate"}, max_attempts=3)
    stale = take_one(callers.agent, "a")
    guarded.sql.execute("update treadle.tasks set lease_until = now() - interval '1 s'")
    guarded.sql.execute("select treadle.reap_claims()")
    take_one(callers.admin, "b")

    assert code_of(act(callers.agent, stale, "complete")) == (409, "claim-lost")


def test_children_go_to_queues_that_the_token_is_for(callers: Callers) -> None:
    register(callers.mail, "m", queues=["mail"])
    enqueue(callers.mail, queue="mail")
    claim = take_one(callers.mail, "m", queues=["mail"])
    said = {"name": "s", "tasks": [{"type": "code", "queue": "default"}]}
    assert code_of(act(callers.mail, claim, "spawn", **said)) == (403, "forbidden")


def test_waits_elsewhere_are_neither_seen_nor_answered(callers: Callers) -> None:
    enqueue(callers.admin)
    wait = act(callers.admin, take_one(callers.admin), "ask", name="q", question="?").json()[
        "wait_id"
    ]

    for caller in (callers.mail, callers.project):
        assert caller.get("/v1/waits").json()["items"] == []
        assert code_of(caller.get(f"/v1/waits/{wait}")) == (403, "forbidden")
        answer = caller.post(f"/v1/waits/{wait}/answer", json={"value": 1})
        assert code_of(answer) == (403, "forbidden")
    assert len(callers.admin.get("/v1/waits").json()["items"]) == 1


def test_one_caller_cannot_vote_as_many(callers: Callers) -> None:
    enqueue(callers.admin)
    asked = act(callers.admin, take_one(callers.admin), "ask", name="q", question="?", approvers=2)
    path = f"/v1/waits/{asked.json()['wait_id']}/answer"
    said = {"value": "approve", "by": "ann"}

    assert code_of(callers.agent.post(path, json=said)) == (403, "forbidden")
    votes = [callers.agent.post(path, json={"value": "approve"}).json()["verdict"] for _ in "xx"]
    assert votes == ["recorded", "already"]


def test_a_token_for_a_project_makes_its_tasks_only(callers: Callers) -> None:
    task_id = enqueue(callers.project)
    task = callers.admin.get(f"/v1/tasks/{task_id}").json()
    assert task["project_id"] is not None
    for said in ({"project": "q"}, {"project_id": task["project_id"]}):
        answer = callers.project.post("/v1/tasks", json={"type": "code", **said})
        assert code_of(answer) == (403, "forbidden")
    # A claim would take tasks of all projects.
    assert code_of(callers.project.post("/v1/claims", json={"agent": "a"})) == (403, "forbidden")


def test_a_key_is_the_callers_own(callers: Callers) -> None:
    said = {"type": "code", "queue": "mail"}
    first, other = (
        caller.post("/v1/tasks", json=said, headers={"Idempotency-Key": "k"})
        for caller in (callers.admin, callers.mail)
    )
    assert (first.status_code, other.status_code) == (201, 201)
    assert first.json()["id"] != other.json()["id"]
