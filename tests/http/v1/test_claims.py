"""Agents over HTTP: register, claim tasks, send heartbeats, and complete or fail tasks."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.v1 import (
    UNKNOWN_ID,
    act,
    claim_of_nobody,
    code_of,
    enqueue,
    register,
    status_of,
    take,
    take_one,
)
from treadle.api.v1 import agents, claims

pytestmark = pytest.mark.usefixtures("agent")


@pytest.fixture
def agent(http: httpx2.Client) -> None:
    register(http)


def reap(sql: Conn) -> None:
    """The lease of every claim runs out."""
    sql.execute(
        "update treadle.tasks set lease_until = now() - interval '1 s' where agent_id = 'a'"
    )
    sql.execute("select treadle.reap_claims()")


def test_an_agent_takes_a_task_and_completes_it(http: httpx2.Client) -> None:
    task_id = enqueue(http, spec={"n": 1})

    claim = take_one(http)
    answer = act(http, claim, "complete", output={"sum": 3})

    assert (claim["id"], claim["spec"], claim["attempt"]) == (task_id, {"n": 1}, 1)
    assert claim["lease_expires_at"] > claim["created_at"]
    assert claim.keys() == claims.Claimed.model_fields.keys()
    claims.Claimed.model_validate(claim)
    assert (answer.status_code, answer.json()) == (200, {"id": task_id, "verdict": "completed"})
    task = http.get(f"/v1/tasks/{task_id}").json()
    assert (task["status"], task["output"], task["completed_by"]) == ("completed", {"sum": 3}, "a")


def test_a_lost_answer_is_asked_for_again_with_the_same_token(http: httpx2.Client) -> None:
    enqueue(http)
    enqueue(http)
    token = "5f0c9d1e-3a57-4d0a-8b0e-0f3c5a6b7c8d"

    first, again = take_one(http, token=token), take_one(http, token=token)

    assert first["id"] == again["id"]
    assert first["token"] == token


def test_a_claim_without_tasks_returns_no_content(http: httpx2.Client) -> None:
    answer = http.post("/v1/claims", json={"agent": "a"})
    assert (answer.status_code, answer.content) == (204, b"")


def test_only_what_was_asked_for_is_taken(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("select treadle.define_type('other'), treadle.define_queue('mail')")
    enqueue(http, queue="mail")
    enqueue(http, type="other")
    wanted = [enqueue(http), enqueue(http)]

    taken = take(http, types=["code"], limit=10)

    assert sorted(claim["id"] for claim in taken) == sorted(wanted)


def test_a_claim_may_start_later(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    claim = take_one(http, start=False)
    assert status_of(http, task_id) == "claimed"

    answer = act(http, claim, "start")

    assert (answer.status_code, answer.json()["verdict"]) == (200, "ok")
    assert status_of(http, task_id) == "running"


def test_a_heartbeat_renews_the_lease_and_reports_a_cancellation(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    claim = take_one(http)
    going = act(http, claim, "heartbeat", progress={"done": 0.5})
    http.post(f"/v1/tasks/{task_id}/cancel")
    stopping = act(http, claim, "heartbeat")

    assert going.json() == {"id": task_id, "verdict": "ok", "cancel_requested": False}
    assert http.get(f"/v1/tasks/{task_id}").json()["progress"] == {"done": 0.5}
    assert stopping.status_code == 200
    assert stopping.json() == {"id": task_id, "verdict": "cancelled", "cancel_requested": True}


def test_a_failure_is_retried_according_to_its_policy(http: httpx2.Client) -> None:
    enqueue(http, max_attempts=2, retry={"strategy": "fixed", "initial_delay_s": 60})
    answer = act(http, take_one(http), "fail", error="tests are red", feedback=["no"])

    assert answer.status_code == 200
    assert (answer.json()["verdict"], answer.json()["failure_class"]) == ("retrying", "error")
    assert answer.json()["retry_at"].endswith("Z")


def test_a_failure_for_good_is_a_dead_letter(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    claim = take_one(http)
    assert act(http, claim, "fail", error="no", action="fail").json()["verdict"] == "dead_lettered"
    assert act(http, claim, "fail", error="no", action="fail").json()["verdict"] == "already"
    assert status_of(http, task_id) == "dead_lettered"


def test_a_task_is_released_without_counting_an_attempt(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    claim = take_one(http)
    assert act(http, claim, "release").json() == {"id": task_id, "verdict": "released"}
    assert take_one(http)["attempt"] == 1


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("start", {}),
        ("heartbeat", {}),
        ("complete", {"output": 1}),
        ("fail", {"error": "x"}),
        ("release", {}),
        ("steps", {"name": "s", "output": 1}),
        ("spend", {"calls": [{"usd": 1}]}),
        ("reserve", {"usd": 1}),
        ("ask", {"name": "q", "question": "?"}),
        ("suspend", {}),
        ("artifacts", {"name": "n", "uri": "u"}),
    ],
)
def test_a_stale_token_can_do_nothing(
    http: httpx2.Client, sql: Conn, verb: str, said: dict[str, Any]
) -> None:
    register(http, "b")
    task_id = enqueue(http, max_attempts=3, retry={"strategy": "immediate"})
    stale = take_one(http)
    reap(sql)
    fresh = take_one(http, "b")

    for claim in (stale, claim_of_nobody(task_id)):
        assert code_of(act(http, claim, verb, **said)) == (409, "claim-lost")
    assert act(http, fresh, "complete").json()["verdict"] == "completed"


def test_a_repeated_completion_or_failure_is_not_an_error(http: httpx2.Client) -> None:
    enqueue(http)
    claim = take_one(http)
    verdicts = [act(http, claim, "complete", output=1).json()["verdict"] for _ in range(2)]
    assert verdicts == ["completed", "already"]


def test_many_results_are_judged_one_by_one(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("""select treadle.define_type('strict', '{"report": "required"}')""")
    tasks = [enqueue(http), enqueue(http, type="strict")]
    claims = take(http, limit=2)
    claims.sort(key=lambda claim: tasks.index(claim["id"]))
    said = [{"id": each["id"], "token": each["token"], "output": 1} for each in claims]
    said.append({"id": UNKNOWN_ID, "token": UNKNOWN_ID, "output": None})

    answer = http.post("/v1/claims/complete", json={"claims": said})
    again = http.post("/v1/claims/complete", json={"claims": said[:1]})

    assert answer.status_code == 200
    verdicts = [item["verdict"] for item in answer.json()["items"]]
    assert verdicts == ["completed", "report_required", "stale"]
    assert [item["id"] for item in answer.json()["items"]] == [*tasks, UNKNOWN_ID]
    assert again.json()["items"][0]["verdict"] == "already"
    assert code_of(http.post("/v1/claims/complete", json={"claims": said[:1] * 2}))[0] == 422


def test_many_leases_are_renewed_at_once(http: httpx2.Client) -> None:
    enqueue(http)
    claim = take_one(http)
    said = [
        {"id": claim["id"], "token": claim["token"], "progress": 1},
        claim_of_nobody(UNKNOWN_ID),
    ]

    answer = http.post("/v1/claims/heartbeat", json={"claims": said})

    assert [item["verdict"] for item in answer.json()["items"]] == ["ok", "lost"]


def test_a_report_that_is_required_is_asked_for(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("""select treadle.define_type('strict', '{"report": "required"}')""")
    enqueue(http, type="strict")
    claim = take_one(http)
    report = {"summary": "chose A", "confidence": 0.8}

    assert code_of(act(http, claim, "complete")) == (409, "report-required")
    assert act(http, claim, "complete", report=report).json()["verdict"] == "completed"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"agent": "nobody"}, 404),
        ({"agent": "a", "queues": ["nowhere"]}, 404),
        ({"agent": "a", "queues": []}, 422),
        ({"agent": "a", "limit": 0}, 422),
        ({"agent": "a", "limit": 10**20}, 422),
        ({"agent": "a", "wait_seconds": 31}, 422),
        ({"agent": "a\x00"}, 422),
        ({"agent": "a", "token": "x"}, 422),
        ({}, 422),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(
    http: httpx2.Client, said: dict[str, Any], status: int
) -> None:
    assert code_of(http.post("/v1/claims", json=said))[0] == status


def test_an_agent_registers_and_signs_off(http: httpx2.Client) -> None:
    register(http, "b", queues=["default"], capabilities=["git"], max_concurrent_tasks=2)
    shown = http.get("/v1/agents/b").json()

    assert (shown["status"], shown["capabilities"], shown["alive"]) == ("active", ["git"], True)
    agents.AgentRow.model_validate(shown)
    assert http.post("/v1/agents/b/heartbeat").json() == {"id": "b", "status": "active"}
    drained = http.put("/v1/agents/b/status", json={"status": "draining"})
    assert drained.json()["status"] == "draining"
    assert http.post("/v1/agents/b/heartbeat").json()["status"] == "draining"
    enqueue(http)
    assert take(http, "b") == []
    assert http.post("/v1/agents/b/leave").json()["status"] == "offline"
    assert [each["agent_id"] for each in http.get("/v1/agents").json()["items"]] == ["a", "b"]


def test_an_agent_that_never_registered_is_not_found(http: httpx2.Client) -> None:
    assert code_of(http.get("/v1/agents/x")) == (404, "unknown-agent")
    assert code_of(http.post("/v1/agents/x/heartbeat")) == (404, "unknown-agent")
    assert code_of(http.post("/v1/agents/x/leave")) == (404, "unknown-agent")
    assert code_of(http.put("/v1/agents/x", json={"heartbeat_s": 0}))[0] == 422
    assert code_of(http.put("/v1/agents/a/status", json={"status": "tired"}))[0] == 422
