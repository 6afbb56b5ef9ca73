"""Queues and types over HTTP: depth, settings, pause and resume."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import code_of, enqueue, register, take
from treadle.api.v1 import queues as models
from treadle.api.v1 import types

QUEUE: dict[str, Any] = {
    "priority": 80, "max_attempts": 5, "timeout_s": 60, "ageing_rate": 0.5,
    "retry": {"strategy": "fixed"}, "max_spec_bytes": 1000, "audit": "full", "max_depth": 100,
    "fair": True, "hold": True, "keep_completed_s": 60, "keep_cancelled_s": 61, "keep_dead_s": 62,
    "prune_mode": "drop",
}  # fmt: skip
TYPE: dict[str, Any] = {
    "description": "d", "priority": 10, "max_attempts": 2, "timeout_s": 5, "ageing_rate": 1,
    "retry": {"strategy": "fixed"}, "gates": ["g"], "breaker": {"threshold": 3},
    "max_cost_usd": 1.5, "max_tokens": 100, "on_budget": "fail",
    "validation": [{"validator": "not_empty"}], "report": "optional",
    "output_type": "json", "models": ["m"],
    "fallback_models": ["f"],
}  # fmt: skip


def test_a_queue_is_defined_with_all_its_settings(http: httpx2.Client) -> None:
    assert set(QUEUE) == set(models.QueueSettings.model_fields)
    made = shaped(models.QueueDetails, http.put("/v1/queues/night", json=QUEUE))
    assert {name: made[name] for name in QUEUE} == QUEUE
    assert shaped(models.QueueDetails, http.get("/v1/queues/night")) == made


def test_absent_fields_keep_their_values_and_null_removes_them(http: httpx2.Client) -> None:
    http.put("/v1/queues/night", json=QUEUE)
    changed = shaped(models.QueueDetails, http.put("/v1/queues/night", json={"max_depth": None}))
    assert changed["max_depth"] is None
    assert {name: changed[name] for name in QUEUE if name != "max_depth"} == {
        name: value for name, value in QUEUE.items() if name != "max_depth"
    }


def test_an_unused_queue_is_deleted(http: httpx2.Client) -> None:
    http.put("/v1/queues/night", json={})
    http.put("/v1/queues/day", json={})
    enqueue(http, queue="day")

    assert http.delete("/v1/queues/night").status_code == 204
    assert http.get("/v1/queues/night").status_code == 404
    assert http.delete("/v1/queues/day").status_code == 409
    assert http.delete("/v1/queues/default").status_code == 422


def test_queues_are_listed_with_their_depth(http: httpx2.Client) -> None:
    http.put("/v1/queues/night", json={})
    enqueue(http, queue="night")
    rows = listed(models.Queue, http.get("/v1/queues"))
    assert {row["queue"]: row["ready"] for row in rows}["night"] == 1
    assert [row["queue"] for row in walked(http, "/v1/queues")] == [row["queue"] for row in rows]


def test_the_order_of_a_queue_is_that_of_claims(http: httpx2.Client) -> None:
    ids = [enqueue(http, priority=priority) for priority in (50, 10, 90)]
    body = shaped(models.ClaimOrder, http.get("/v1/queues/default/order"))
    for item in body["items"]:
        models.QueuePosition.model_validate(item)
    assert [item["id"] for item in body["items"]] == [ids[1], ids[0], ids[2]]
    assert len(http.get("/v1/queues/default/order?limit=1").json()["items"]) == 1


def test_nothing_is_claimed_from_a_paused_queue(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    enqueue(http)
    paused = http.post("/v1/queues/default/pause", json={"reason": "provider is down"})
    shown = shaped(models.QueueDetails, paused)
    assert (shown["paused"], shown["paused_by"]) == (True, "local")
    assert shown["paused_reason"] == "provider is down"
    assert take(http) == []

    stuck = shaped(models.StuckList, http.get("/v1/stuck"))["items"]
    assert [(row["queue"], row["tasks"]) for row in stuck] == [("default", 1)]
    models.Stuck.model_validate(stuck[0])
    assert shaped(models.QueueDetails, http.post("/v1/queues/default/resume"))["paused"] is False
    assert len(take(http)) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/order"), ("POST", "/pause"), ("POST", "/resume")],
)
def test_an_unknown_queue_is_not_found(http: httpx2.Client, method: str, path: str) -> None:
    answer = http.request(method, f"/v1/queues/nowhere{path}")
    assert code_of(answer) == (404, "unknown-queue")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Capitals", {}),
        ("a" * 49, {}),
        ("night", {"priority": 101}),
        ("night", {"priority": "5"}),
        ("night", {"fair": 1}),
        ("night", {"retry": {"strategy": "never"}}),
        ("night", {"color": "red"}),
        ("night", {"max_depth": 0}),
    ],
)
def test_a_queue_that_cannot_be_is_refused(
    http: httpx2.Client, name: str, said: dict[str, Any]
) -> None:
    assert code_of(http.put(f"/v1/queues/{name}", json=said)) == (422, "invalid-argument")
    assert code_of(http.get("/v1/queues/night")) == (404, "unknown-queue")


def test_a_type_is_defined_with_all_its_settings(http: httpx2.Client) -> None:
    assert set(TYPE) == set(types.TypeSettings.model_fields)
    made = shaped(types.Type, http.put("/v1/types/web/build", json=TYPE))
    assert {name: made[name] for name in TYPE} == TYPE
    assert shaped(types.Type, http.get("/v1/types/web/build")) == made


def test_types_are_listed_by_name(http: httpx2.Client) -> None:
    names = [row["type"] for row in listed(types.Type, http.get("/v1/types"))]
    assert names == sorted(names)
    assert [row["type"] for row in walked(http, "/v1/types")] == names


def test_no_task_of_a_paused_type_is_claimed(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    enqueue(http)
    paused = shaped(types.Type, http.post("/v1/types/code/pause", json={"reason": "moving"}))
    assert (paused["state"], paused["paused_reason"]) == ("paused", "moving")
    assert take(http) == []
    assert shaped(types.Type, http.post("/v1/types/code/resume"))["state"] == "open"
    assert len(take(http)) == 1


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/pause"), ("POST", "/resume")])
def test_an_unknown_type_is_not_found(http: httpx2.Client, method: str, path: str) -> None:
    assert code_of(http.request(method, f"/v1/types/nothing{path}")) == (404, "unknown-type")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a b", {}),
        ("build", {"breaker": {"color": 1}}),
        ("build", {"validation": [{"validator": ""}]}),
        ("build", {"gates": "g"}),
        ("build", {"max_tokens": -1}),
        ("build", {"description": "\x00"}),
    ],
)
def test_a_type_that_cannot_be_is_refused(
    http: httpx2.Client, name: str, said: dict[str, Any]
) -> None:
    assert code_of(http.put(f"/v1/types/{name}", json=said)) == (422, "invalid-argument")
    assert code_of(http.get("/v1/types/build")) == (404, "unknown-type")
