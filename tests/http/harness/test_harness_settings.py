"""The effect of the settings of a server on harness tasks."""

from datetime import datetime
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.servers import Serve

ME = "http://agent-1:9000"


@pytest.mark.requirement("H4")
def test_the_claim_timeout_is_the_one_of_the_server(serve: Serve) -> None:
    server = serve(harness_claim_timeout_s=90)
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        http.post("/harness/tasks", json={"agent_url": ME, "payload": {}})
        asked = {"agent_url": ME, "claim_token": str(uuid4())}
        before = datetime.now().astimezone()
        task = http.post("/harness/next", json=asked).json()
        lasts = datetime.fromisoformat(task["claim_until"]) - before
        assert 89 <= lasts.total_seconds() <= 120

        beat = http.post(f"/harness/tasks/{task['task_id']}/heartbeat", json=asked).json()

    renewed = datetime.fromisoformat(beat["claim_until"])
    assert 89 <= (renewed - before).total_seconds() <= 130
    assert renewed > datetime.fromisoformat(task["claim_until"])


@pytest.mark.requirement("H10")
def test_a_server_can_be_configured_to_store_apparent_credentials(serve: Serve) -> None:
    server = serve(harness_secrets=1)
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        body = {"agent_url": ME, "payload": {"password": "abc"}}
        made = http.post("/harness/tasks", json=body)
        assert made.status_code == 201
        asked = {"agent_url": ME, "claim_token": str(uuid4())}
        task_id = http.post("/harness/next", json=asked).json()["task_id"]

        where = f"/harness/tasks/{task_id}/complete"
        done = http.post(where, json={**asked, "decision": {"password": "abc"}})

        assert done.status_code == 200
        assert http.get(f"/harness/tasks/{task_id}").json()["result"] == {"password": "abc"}
