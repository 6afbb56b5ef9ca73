"""Gates, breakers and concurrency keys over HTTP."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import code_of, enqueue, register, take
from treadle.api.v1 import breakers, gates, keys


def test_a_gate_is_defined_with_a_limit_and_without(http: httpx2.Client) -> None:
    made = http.put("/v1/gates/llm/main", json={"limit": 50, "per_s": 60, "unit": "tokens"})
    shown = shaped(gates.Gate, made)
    assert (shown["limit"], shown["per_s"], shown["unit"]) == (50, 60, "tokens")
    assert (shown["state"], shown["used"]) == ("open", 0)
    assert shaped(gates.Gate, http.get("/v1/gates/llm/main")) == shown

    changed = shaped(gates.Gate, http.put("/v1/gates/llm/main", json={"limit": 70}))
    assert (changed["limit"], changed["per_s"]) == (70, 60)
    assert shaped(gates.Gate, http.put("/v1/gates/llm/main", json={"limit": None}))["unit"] is None


def test_nothing_starts_behind_a_closed_gate(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    http.put("/v1/gates/g", json={})
    enqueue(http, gates=["g"])
    closed = http.post("/v1/gates/g/close", json={"seconds": 600, "reason": "incident"})
    shown = shaped(gates.Gate, closed)
    assert (shown["state"], shown["reason"], shown["closed_by"]) == ("closed", "incident", "local")
    assert take(http) == []

    opened = shaped(gates.Opened, http.post("/v1/gates/g/open"))
    assert opened == {"key": "g", "was_closed": True}
    assert http.post("/v1/gates/g/open").json()["was_closed"] is False
    assert len(take(http)) == 1


def test_the_gate_of_a_type_is_closed_and_opened(http: httpx2.Client) -> None:
    assert http.post("/v1/gates/type:code/open").json()["was_closed"] is False
    closed = shaped(gates.Gate, http.post("/v1/gates/type:code/close"))
    assert closed["types"] == ["code"]
    assert http.get("/v1/types/code").json()["state"] == "closed"


def test_gates_are_listed_by_key(http: httpx2.Client) -> None:
    for key in ("b", "a"):
        http.put(f"/v1/gates/{key}", json={})
    assert [row["key"] for row in listed(gates.Gate, http.get("/v1/gates"))] == ["a", "b"]
    assert [row["key"] for row in walked(http, "/v1/gates")] == ["a", "b"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("g", {"limit": 5}),
        ("g", {"limit": 0, "per_s": 60}),
        ("g", {"limit": "5", "per_s": 60}),
        ("g", {"limit": 5e-324, "per_s": 60, "unit": "usd"}),
        ("g", {"limit": 5, "per_s": 60, "unit": "apples"}),
        ("g", {"color": "red"}),
        ("over:x", {}),
        ("type:nothing", {}),
        ("a b", {}),
    ],
)
def test_a_gate_that_cannot_be_is_refused(
    http: httpx2.Client, key: str, said: dict[str, Any]
) -> None:
    assert code_of(http.put(f"/v1/gates/{key}", json=said)) == (422, "invalid-argument")
    assert http.get("/v1/gates").json()["items"] == []


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/close"), ("POST", "/open")])
def test_an_unknown_gate_is_not_found(http: httpx2.Client, method: str, path: str) -> None:
    assert code_of(http.request(method, f"/v1/gates/nothing{path}")) == (404, "unknown-gate")


def test_a_type_is_kept_back_while_its_breaker_is_open(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    enqueue(http)
    tripped = http.post("/v1/breakers/code/trip", json={"seconds": 600, "reason": "moving"})
    shown = shaped(breakers.Breaker, tripped)
    assert (shown["state"], shown["opened_by"], shown["last_error"]) == ("open", "local", "moving")
    assert take(http) == []
    assert [row["type"] for row in walked(http, "/v1/breakers", state="open")] == ["code"]

    reset = shaped(breakers.Breaker, http.post("/v1/breakers/code/reset"))
    assert (reset["state"], reset["failures"]) == ("closed", 0)
    assert shaped(breakers.Breaker, http.get("/v1/breakers/code")) == reset
    assert len(take(http)) == 1
    assert len(listed(breakers.Breaker, http.get("/v1/breakers"))) > 1


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/trip"), ("POST", "/reset")])
def test_the_breaker_of_an_unknown_type_is_not_found(
    http: httpx2.Client, method: str, path: str
) -> None:
    assert code_of(http.request(method, f"/v1/breakers/nothing{path}")) == (404, "unknown-type")


def test_a_breaker_is_not_tripped_for_no_time(http: httpx2.Client) -> None:
    answer = http.post("/v1/breakers/code/trip", json={"seconds": 0})
    assert code_of(answer) == (422, "invalid-argument")
    assert http.get("/v1/breakers/code").json()["state"] == "closed"


def test_a_key_has_so_many_slots(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    made = http.put("/v1/concurrency-keys/repo/42", json={"limit": 2})
    assert shaped(keys.ConcurrencyKey, made)["max"] == 2
    for _ in range(3):
        enqueue(http, concurrency_key="repo/42")
    assert len(take(http, limit=3)) == 2
    [row] = listed(keys.ConcurrencyKey, http.get("/v1/concurrency-keys"))
    assert (row["key"], row["held"], row["waiting"]) == ("repo/42", 2, 1)
    assert code_of(http.put("/v1/concurrency-keys/x", json={"limit": -1}))[0] == 422
    assert [row["key"] for row in walked(http, "/v1/concurrency-keys")] == ["repo/42"]
