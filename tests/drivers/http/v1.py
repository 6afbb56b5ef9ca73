"""Requests that many tests of /v1 make."""

from typing import Any
from uuid import uuid4

import httpx2

Json = dict[str, Any]
UNKNOWN_ID = "01a1e28c-006d-7ef2-834a-9098ae735bc9"


def enqueue(http: httpx2.Client, **said: Any) -> str:
    """The id of a new task."""
    answer = http.post("/v1/tasks", json={"type": "code", **said})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def register(http: httpx2.Client, agent: str = "a", **said: Any) -> None:
    assert http.put(f"/v1/agents/{agent}", json=said).status_code == 200


def take(http: httpx2.Client, agent: str = "a", **said: Any) -> list[Json]:
    """Claims for an agent."""
    answer = http.post("/v1/claims", json={"agent": agent, **said})
    assert answer.status_code in (200, 204), answer.text
    return list(answer.json()["claims"]) if answer.status_code == 200 else []


def take_one(http: httpx2.Client, agent: str = "a", **said: Any) -> Json:
    [claim] = take(http, agent, **said)
    return claim


def act(http: httpx2.Client, claim: Json, verb: str, **said: Any) -> httpx2.Response:
    """Post to a route of a claim."""
    return http.post(f"/v1/claims/{claim['id']}/{verb}", json={"token": claim["token"], **said})


def status_of(http: httpx2.Client, task_id: str) -> str:
    return str(http.get(f"/v1/tasks/{task_id}").json()["status"])


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


def claim_of_nobody(task_id: str) -> Json:
    """A claim with an unknown token."""
    return {"id": task_id, "token": str(uuid4())}
