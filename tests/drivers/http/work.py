"""Create work items over HTTP, bring them to a state, and check refusals."""

from collections.abc import Callable
from typing import Any

import httpx2

from tests.drivers.http.servers import Conn

Item = dict[str, Any]

STATES = ("queued", "dispatched", "in_progress", "blocked", "completed", "failed", "cancelled")
# How an item gets to each state: the changes after it was made.
WAYS: dict[str, list[Item]] = {
    "queued": [],
    "dispatched": [{"status": "dispatched", "assigned_agent": "steve-w"}],
    "cancelled": [{"status": "cancelled"}],
}
WAYS["in_progress"] = [*WAYS["dispatched"], {"status": "in_progress"}]
WAYS["blocked"] = [*WAYS["in_progress"], {"status": "blocked", "notes": "waits for a key"}]
WAYS["completed"] = [*WAYS["in_progress"], {"status": "completed", "outcome": "success"}]
WAYS["failed"] = [*WAYS["in_progress"], {"status": "failed", "outcome": "failed"}]


def add(http: httpx2.Client, **fields: Any) -> Item:
    """A new item."""
    body = {"type": "code_review", "description": "Review PR #3", **fields}
    answer = http.post("/work", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def change(http: httpx2.Client, item: Item, **fields: Any) -> Item:
    """Change an item; it must work."""
    answer = http.patch(f"/work/{item['id']}", json=fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def brought(http: httpx2.Client, status: str, **fields: Any) -> Item:
    """A new item in this state."""
    item = add(http, **fields)
    for each in WAYS[status]:
        item = change(http, item, **each)
    assert item["status"] == status
    return item


def get(http: httpx2.Client, item: Item) -> Item:
    answer = http.get(f"/work/{item['id']}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def listed(http: httpx2.Client, **filters: Any) -> list[str]:
    """The descriptions of the items that match, in order."""
    answer = http.get("/work", params=filters)
    assert answer.status_code == 200, answer.text
    return [item["description"] for item in answer.json()]


def refused(answer: httpx2.Response, status: int, code: str) -> Item:
    """The problem document of a refused request."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = dict(answer.json())
    assert (problem["status"], problem["code"]) == (status, code)
    return problem


def aged(sql: Conn, item: Item, by: str) -> None:
    """Move the last change of an item into the past. The log is protected even from tests."""
    sql.execute("set session_replication_role = replica")
    sql.execute(
        "update treadle.work_log set at = at - %s::interval where task_id = %s", (by, item["id"])
    )
    sql.execute(
        "update treadle.tasks set created_at = created_at - %s::interval where id = %s",
        (by, item["id"]),
    )
    sql.execute("set session_replication_role = origin")


class Meddling(httpx2.BaseTransport):
    """A client that runs a callback between listing and updating items."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self._meddle = meddle
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._inner.handle_request(request)
        if request.method == "GET":
            self._meddle()
        return response
