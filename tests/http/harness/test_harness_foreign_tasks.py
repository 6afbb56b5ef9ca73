"""Tasks that entered or left the harness queue through another interface."""

from uuid import UUID, uuid4

import httpx2
import pytest

from tests.drivers.http.harness import ME, put
from tests.drivers.http.servers import Conn


def ask(http: httpx2.Client, token: str) -> httpx2.Response:
    return http.post("/harness/next", json={"agent_url": ME, "claim_token": token})


@pytest.mark.requirement("H3")
def test_a_task_without_an_agent_is_none_of_the_harness(http: httpx2.Client, sql: Conn) -> None:
    put(sql)
    assert ask(http, str(uuid4())).status_code == 200
    made = http.post("/v1/tasks", json={"queue": "harness", "type": "code"})
    assert made.status_code == 201, made.text
    task_id = made.json()["id"]

    assert ask(http, str(uuid4())).status_code == 204

    assert http.get(f"/harness/tasks/{task_id}").status_code == 404
    for verb in ("heartbeat", "complete", "fail"):
        body = {"claim_token": str(uuid4()), "decision": {}, "error": "no"}
        assert http.post(f"/harness/tasks/{task_id}/{verb}", json=body).status_code == 404


@pytest.mark.parametrize("output", [7, [1], "text", None])
def test_an_output_that_is_not_a_decision_is_not_shown_as_one(
    http: httpx2.Client, sql: Conn, output: object
) -> None:
    task_id, token = put(sql), str(uuid4())
    ask(http, token)
    body = {"token": token, "output": output}
    assert http.post(f"/v1/claims/{task_id}/complete", json=body).status_code == 200

    found = http.get(f"/harness/tasks/{task_id}")

    assert found.status_code == 200, found.text
    assert (found.json()["status"], found.json()["result"]) == ("completed", None)


def test_a_token_whose_claim_expired_must_be_replaced(http: httpx2.Client, sql: Conn) -> None:
    task_id, token = put(sql), str(uuid4())
    ask(http, token)
    body = {"claim_token": token, "error": "no model"}
    assert http.post(f"/harness/tasks/{UUID(task_id)}/fail", json=body).status_code == 200

    answer = ask(http, token)

    assert (answer.status_code, answer.json()["code"]) == (409, "claim-lost")
    assert (answer.json()["task_id"], answer.json()["hint"]) == (
        task_id,
        "Claim again with a new token.",
    )
    assert ask(http, str(uuid4())).json()["retry_count"] == 1
