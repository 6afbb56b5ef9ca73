"""Budgets over HTTP: set, get, delete, and costs."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, take_one
from treadle.api.v1 import budgets as models


def put(http: httpx2.Client, **said: Any) -> dict[str, Any]:
    return shaped(models.Budget, http.put("/v1/budgets", json=said))


def test_a_budget_is_set_changed_and_removed(http: httpx2.Client) -> None:
    made = put(http, scope="type", key="code", limit_usd=20.5, period="day", on_exhausted="fail")
    assert (made["scope"], made["key"], made["period"]) == ("type", "code", "day")
    assert (made["limit_usd"], made["left_usd"], made["set_by"]) == (20.5, 20.5, "local")
    assert shaped(models.Budget, http.get(f"/v1/budgets/{made['id']}")) == made

    changed = put(http, scope="type", key="code", limit_usd=10, period="day")
    assert (changed["id"], changed["limit_usd"]) == (made["id"], 10)
    assert changed["on_exhausted"] == "fail"

    assert http.delete(f"/v1/budgets/{made['id']}").status_code == 204
    assert code_of(http.get(f"/v1/budgets/{made['id']}")) == (404, "unknown-budget")
    assert code_of(http.delete(f"/v1/budgets/{made['id']}")) == (404, "unknown-budget")


def test_budgets_are_listed_and_filtered(http: httpx2.Client) -> None:
    everything = put(http, scope="all", limit_usd=500, period="month")
    kind = put(http, scope="type", key="code", limit_usd=5)
    rows = listed(models.Budget, http.get("/v1/budgets"))
    assert [row["id"] for row in rows] == [everything["id"], kind["id"]]
    assert [row["id"] for row in walked(http, "/v1/budgets", scope="type")] == [kind["id"]]
    assert http.delete(f"/v1/budgets/{everything['id']}").status_code == 204


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"scope": "type", "key": "nothing", "limit_usd": 1}, (404, "unknown-type")),
        ({"scope": "agent", "key": "nobody", "limit_usd": 1}, (404, "unknown-agent")),
        ({"scope": "dag", "key": UNKNOWN_ID, "limit_usd": 1}, (404, "dag-not-found")),
        ({"scope": "project", "key": "none", "limit_usd": 1}, (404, "unknown-project")),
        ({"scope": "all", "key": "x", "limit_usd": 1}, (422, "invalid-argument")),
        ({"scope": "moon", "limit_usd": 1}, (422, "invalid-argument")),
        ({"scope": "all", "limit_usd": -1}, (422, "invalid-argument")),
        ({"scope": "all", "limit_usd": "5"}, (422, "invalid-argument")),
        ({"scope": "all", "limit_usd": 1e12}, (422, "invalid-argument")),
        ({"scope": "all", "limit_usd": 1, "period": "year"}, (422, "invalid-argument")),
        ({"scope": "all"}, (422, "invalid-argument")),
    ],
)
def test_what_cannot_be_is_refused(
    http: httpx2.Client, said: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code_of(http.put("/v1/budgets", json=said)) == expected
    assert http.get("/v1/budgets").json()["items"] == []


def test_what_was_spent_is_summed_up(http: httpx2.Client) -> None:
    register(http, queues=["default"])
    enqueue(http)
    claim = take_one(http)
    act(http, claim, "start")
    call = {"call_id": "c1", "model": "m", "usd": 0.25, "input_tokens": 10, "output_tokens": 5}
    spent = act(http, claim, "spend", calls=[call])
    assert spent.status_code == 200, spent.text

    for by, of in (("agent", "a"), ("model", "m"), ("type", "code")):
        body = shaped(models.Spending, http.get("/v1/spend", params={"by": by, "days": 1}))
        assert (body["by"], body["days"]) == (by, 1)
        assert body["items"] == [
            {"of": of, "calls": 1, "input_tokens": 10, "output_tokens": 5, "usd": 0.25}
        ]
    assert len(shaped(models.Spending, http.get("/v1/spend?by=day"))["items"]) == 1
    assert code_of(http.get("/v1/spend?by=moon")) == (422, "invalid-argument")
    assert code_of(http.get("/v1/spend?days=0")) == (422, "invalid-argument")
