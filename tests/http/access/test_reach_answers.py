"""A restricted token cannot change shared objects with events and answers."""

from typing import Any

import pytest

from tests.drivers.http.bound_tokens import FORBIDDEN, Callers
from tests.drivers.http.v1 import act, code_of, enqueue, status_of, take, take_one

BOUND = ["mail", "project"]


def own(kind: str) -> dict[str, Any]:
    return {"queue": "mail"} if kind == "mail" else {"project": "p"}


@pytest.mark.parametrize("kind", BOUND)
def test_a_restricted_token_cannot_emit_an_event_even_for_its_own_task(
    callers: Callers, kind: str
) -> None:
    caller = getattr(callers, kind)
    said = {"event": "paid", "task_id": enqueue(callers.admin, **own(kind))}

    assert code_of(caller.post("/v1/events", json=said)) == FORBIDDEN
    assert callers.admin.post("/v1/events", json=said).status_code == 201


@pytest.mark.parametrize("kind", BOUND)
def test_a_shared_budget_is_not_raised_by_an_answer(callers: Callers, kind: str) -> None:
    caller = getattr(callers, kind)
    budget = {"scope": "type", "key": "code", "limit_usd": 1}
    budget_id = callers.admin.put("/v1/budgets", json=budget).json()["id"]
    task = enqueue(callers.admin, max_cost_usd=2, **own(kind))
    assert take(callers.admin, queues=["default", "mail"]) == []
    callers.sql.execute("select * from treadle.review_budgets()")
    [wait] = caller.get("/v1/waits").json()["items"]
    path = f"/v1/waits/{wait['id']}/answer"

    assert code_of(caller.post(path, json={"value": 5})) == FORBIDDEN
    assert callers.admin.get(f"/v1/budgets/{budget_id}").json()["limit_usd"] == 1
    assert caller.post(path, json={"value": False}).json()["verdict"] == "answered"
    assert status_of(callers.admin, task) == "dead_lettered"
    callers.admin.delete(f"/v1/budgets/{budget_id}")


def test_the_limit_of_ones_own_task_is_raised_by_an_answer(callers: Callers) -> None:
    task = enqueue(callers.admin, max_cost_usd=1, queue="mail")
    claim = take_one(callers.admin, queues=["mail"])
    assert act(callers.admin, claim, "reserve", usd=2).json()["verdict"] != "ok"
    [wait] = callers.mail.get("/v1/waits").json()["items"]

    said = callers.mail.post(f"/v1/waits/{wait['id']}/answer", json={"value": 5})

    assert said.json()["verdict"] == "answered"
    assert callers.admin.get(f"/v1/tasks/{task}").json()["max_cost_usd"] == 5
