"""Waits over HTTP: tasks ask, people and events answer, and the tasks resume."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, status_of, take_one
from treadle.api.v1 import waits


@pytest.fixture
def claim(http: httpx2.Client) -> dict[str, Any]:
    register(http)
    enqueue(http, title="ship")
    return take_one(http)


def ask(http: httpx2.Client, claim: dict[str, Any], **said: Any) -> str:
    answer = act(http, claim, "ask", **{"name": "q", "question": "Ship it?", **said})
    assert (answer.status_code, answer.json()["status"]) == (200, "open"), answer.text
    return str(answer.json()["wait_id"])


def test_a_task_asks_releases_its_claim_and_resumes_with_the_answer(
    http: httpx2.Client, claim: dict[str, Any]
) -> None:
    wait = ask(http, claim, options=["yes", "no"], context={"size": 3})
    suspended = act(http, claim, "suspend", waits=[wait])
    shown = http.get(f"/v1/waits/{wait}").json()

    answered = http.post(f"/v1/waits/{wait}/answer", json={"value": "yes", "note": "go"})
    again = http.post(f"/v1/waits/{wait}/answer", json={"value": "yes"})

    assert suspended.json() == {"id": claim["id"], "status": "blocked"}
    assert (shown["question"], shown["options"], shown["title"]) == (
        "Ship it?",
        ["yes", "no"],
        "ship",
    )
    waits.Wait.model_validate(shown)
    assert answered.json() == {"id": wait, "verdict": "answered"}
    assert again.json()["verdict"] == "already"
    resumed = take_one(http)
    told = act(http, resumed, "ask", name="q", question="Ship it?", options=["yes", "no"],
               context={"size": 3}).json()  # fmt: skip
    assert (told["status"], told["answer"]["value"], told["answer"]["by"]) == (
        "answered", "yes", "local",
    )  # fmt: skip


def test_waits_are_listed_open_ones_first(http: httpx2.Client, claim: dict[str, Any]) -> None:
    waits = [ask(http, claim, name=f"q{number}") for number in range(3)]
    http.post(f"/v1/waits/{waits[0]}/answer", json={"value": 1})

    first = http.get("/v1/waits", params={"limit": 1})
    second = http.get(first.links["next"]["url"])
    ended = http.get("/v1/waits", params={"status": "ended", "task_id": claim["id"]})

    assert [first.json()["items"][0]["id"], second.json()["items"][0]["id"]] == waits[1:]
    assert [each["id"] for each in ended.json()["items"]] == waits[:1]
    assert http.get("/v1/waits", params={"task_id": UNKNOWN_ID}).json()["items"] == []


def test_an_answer_that_does_not_fit_is_refused(http: httpx2.Client, claim: dict[str, Any]) -> None:
    wait = ask(http, claim, options=["yes", "no"])
    path = f"/v1/waits/{wait}/answer"

    assert code_of(http.post(path, json={"value": "maybe"})) == (422, "invalid-argument")
    assert code_of(http.post(path, json={})) == (422, "invalid-argument")
    assert code_of(http.post(path, json={"value": "\x00"})) == (422, "invalid-argument")
    assert http.post(path, json={"value": "yes"}).json()["verdict"] == "answered"
    assert code_of(http.post(path, json={"value": "no"})) == (409, "illegal-transition")


def test_an_approval_needs_the_requested_number_of_people(
    http: httpx2.Client, claim: dict[str, Any]
) -> None:
    path = f"/v1/waits/{ask(http, claim, approvers=2)}/answer"
    votes = [
        http.post(path, json={"value": "approve", "by": by}).json()["verdict"]
        for by in ("ann", "ann", "bob")
    ]
    assert votes == ["recorded", "already", "answered"]


def test_a_missing_wait_is_not_found(http: httpx2.Client) -> None:
    assert code_of(http.get(f"/v1/waits/{UNKNOWN_ID}")) == (404, "wait-not-found")
    answer = http.post(f"/v1/waits/{UNKNOWN_ID}/answer", json={"value": 1})
    assert code_of(answer) == (404, "wait-not-found")


def test_an_event_wakes_the_task_that_waits_for_it(
    http: httpx2.Client, claim: dict[str, Any]
) -> None:
    wait = ask(http, claim, question=None, event="invoice.paid", key="7")
    act(http, claim, "suspend", waits=[wait])
    said = {"event": "invoice.paid", "key": "7", "payload": {"n": 1}, "dedup_key": "d"}

    first = http.post("/v1/events", json=said)
    again = http.post("/v1/events", json=said)

    assert (first.status_code, again.json()) == (201, first.json())
    assert status_of(http, claim["id"]) == "ready"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"event": "task.completed"}, 422),
        ({"event": ""}, 422),
        ({"event": "x", "key": "k" * 201}, 422),
        ({"event": "x", "payload": {"a": "\x00"}}, 422),
        ({"event": "x", "task_id": UNKNOWN_ID}, 404),
        ({}, 422),
    ],
)
def test_an_event_that_cannot_be_is_refused(
    http: httpx2.Client, said: dict[str, Any], status: int
) -> None:
    assert code_of(http.post("/v1/events", json=said))[0] == status


def test_a_step_is_kept_for_the_next_attempt(http: httpx2.Client, claim: dict[str, Any]) -> None:
    first = act(http, claim, "steps", name="s", output=[1], input_hash="h", took_s=2)
    again = act(http, claim, "steps", name="s", output=[2], input_hash="h")
    other = act(http, claim, "steps", name="s", output=[2], input_hash="x")

    assert first.json() == {"output": [1], "verdict": "ok"}
    assert again.json()["output"] == [1]
    assert code_of(other) == (409, "step-conflict")
    act(http, claim, "release")
    assert [step["name"] for step in take_one(http)["steps"]] == ["s"]


def test_what_a_task_spends_is_counted_once(http: httpx2.Client, claim: dict[str, Any]) -> None:
    call = {"call_id": "c", "usd": 0.25, "model": "m", "input_tokens": 10, "output_tokens": 2}
    for _ in range(2):
        money = act(http, claim, "spend", calls=[call]).json()
    assert (money["cost_usd"], money["verdict"]) == (0.25, "ok")
    assert act(http, claim, "reserve", usd=1).json()["verdict"] == "ok"
    assert code_of(act(http, claim, "spend", calls=[{"usd": -1}]))[0] == 422
    assert code_of(act(http, claim, "spend", calls=[{"usd": 1e9}]))[0] == 422
    assert code_of(act(http, claim, "spend", calls=[{}]))[0] == 422


def test_a_task_starts_others_and_waits_for_them(
    http: httpx2.Client, claim: dict[str, Any]
) -> None:
    said = {"name": "parts", "tasks": [{"type": "code", "spec": {"n": n}} for n in range(2)]}
    made = act(http, claim, "spawn", **said).json()["items"]
    again = act(http, claim, "spawn", **said).json()["items"]
    children = [each["id"] for each in made]

    suspended = act(http, claim, "suspend", children=children)

    assert [each["id"] for each in again] == children
    assert suspended.json()["status"] == "pending"
    assert sorted(http.get(f"/v1/tasks/{claim['id']}").json()["blocked_by"]) == sorted(children)
    assert act(http, claim, "suspend", children=children).json()["status"] == "already"


def test_waiting_for_an_unknown_task_fails_at_once(
    http: httpx2.Client, claim: dict[str, Any]
) -> None:
    assert code_of(act(http, claim, "suspend", waits=[UNKNOWN_ID])) == (404, "wait-not-found")
    assert code_of(act(http, claim, "suspend", children=[UNKNOWN_ID])) == (404, "task-not-found")
