"""An agent fails a task: only that task is affected, and any error text is stored."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.harness import ME, fetched, put, rows
from tests.drivers.http.servers import Conn, Served
from treadle.client import HarnessClient

OTHER = "http://agent-2:9000"
TROUBLES = ["429 Too Many Requests", "rate limit reached", "quota exceeded for this model"]


@pytest.fixture
def client(server: Served, sql: Conn) -> Any:
    with HarnessClient(server.url, ME, patience_s=20) as made:
        yield made


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("error", TROUBLES)
def test_a_rate_limit_reported_by_an_agent_does_not_delay_others(
    client: HarnessClient, server: Served, sql: Conn, error: str
) -> None:
    task_id = put(sql)
    sql.execute("select treadle.enqueue_harness_task(%s, '{}')", (OTHER,))

    client.fail_task(fetched(client).task_id, error)

    found = "select status, retry_count from treadle.harness_tasks where task_id = %s"
    assert rows(sql, found, task_id) == [("pending", 1)]
    assert rows(sql, "select status, failure_class from treadle.tasks where id = %s", task_id) == [
        ("ready", "error")
    ]
    assert fetched(client).retry_count == 1
    with HarnessClient(server.url, OTHER) as other:
        fetched(other)


def test_a_repeated_failure_changes_and_logs_nothing(
    client: HarnessClient, server: Served, sql: Conn, http: httpx2.Client
) -> None:
    for retry, status, event in ((True, "pending", "requeued"), (False, "failed", "failed")):
        task_id = put(sql)
        fetched(client)
        body = client._claims.body(task_id, error="no model", retry=retry)

        told = [http.post(f"/harness/tasks/{task_id}/fail", json=body) for _ in range(3)]

        assert [each.status_code for each in told] == [200] * 3
        assert [each.json()["status"] for each in told] == [status] * 3
        [line] = server.child.events(f"harness.{event}", task_id=task_id)
        assert (line["agent_url"], line["reason"]) == (ME, "agent")
        sql.execute("delete from treadle.tasks")


def test_a_claim_that_is_asked_for_again_is_logged_once(
    server: Served, sql: Conn, http: httpx2.Client
) -> None:
    task_id = put(sql)
    asked = {"agent_url": ME, "claim_token": task_id}

    got = [http.post("/harness/next", json=asked).json()["task_id"] for _ in range(3)]

    assert got == [task_id] * 3
    assert len(server.child.events("harness.claimed", task_id=task_id)) == 1


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("a" * 30_000 + "b" * 30_000, ("aaa", "bbb")),
        ("é" * 1_500_000, ("é", "é")),
        ("half a \ud800 pair, a \x00 in it", ("half a ?", "a \u2400 in it")),
    ],
    ids=["long", "larger than a body", "no text"],
)
def test_the_task_is_released_regardless_of_the_response_to_the_client(
    client: HarnessClient, sql: Conn, error: str, kept: tuple[str, str]
) -> None:
    put(sql)

    client.fail_task(fetched(client).task_id, error)

    assert rows(sql, "select status from treadle.harness_tasks") == [("pending",)]
    [(said,)] = rows(sql, "select error from treadle.attempts")
    assert isinstance(said, str)
    assert said.startswith(kept[0])
    assert said.endswith(kept[1])


def test_the_server_cuts_a_long_failure_by_itself(
    client: HarnessClient, sql: Conn, http: httpx2.Client
) -> None:
    task_id = put(sql)
    fetched(client)
    body = client._claims.body(task_id, error="a" * 500_000 + "end")

    assert http.post(f"/harness/tasks/{task_id}/fail", json=body).json()["status"] == "pending"

    [(said,)] = rows(sql, "select error from treadle.attempts")
    assert "characters left out" in str(said)
    assert str(said).endswith("end")
