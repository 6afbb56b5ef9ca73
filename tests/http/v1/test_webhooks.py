"""Webhooks over HTTP: create, test, rotate, delete; and incoming calls."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import code_of
from treadle.api.v1 import webhooks as models

OPS: dict[str, Any] = {"url": "https://example.org/hook?key=5", "kinds": ["task.*"]}
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="


def define(http: httpx2.Client, name: str = "ops", **said: Any) -> dict[str, Any]:
    answer = http.put(f"/v1/webhooks/{name}", json={**OPS, **said})
    return shaped(models.DefinedWebhook, answer)


def test_a_secret_is_shown_once_and_the_path_never(http: httpx2.Client) -> None:
    made = define(http)
    assert made["secret"].startswith("whsec_")
    assert made["address"] == "https://example.org"
    again = http.get("/v1/webhooks/ops")
    shown = shaped(models.Webhook, again)
    assert (shown["status"], shown["kinds"], shown["created_by"]) == ("active", ["task.*"], "local")
    assert made["secret"] not in again.text
    assert "key=5" not in again.text
    assert define(http, filter={"queue": "default"})["secret"] is None
    assert define(http, "own", secret=SECRET)["secret"] is None


def test_a_secret_is_rotated(http: httpx2.Client) -> None:
    first = define(http)["secret"]
    rotated = shaped(models.Secret, http.post("/v1/webhooks/ops/rotate", json={"keep_s": 60}))
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != first
    assert http.get("/v1/webhooks/ops").json()["rotated_until"] is not None


def test_a_new_secret_whose_answer_was_lost_can_be_asked_for_again(http: httpx2.Client) -> None:
    define(http)
    key = {"Idempotency-Key": "k"}
    first, again = (http.post("/v1/webhooks/ops/rotate", headers=key) for _ in range(2))

    assert first.json()["secret"].startswith("whsec_")
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert http.post("/v1/webhooks/ops/rotate").json() != first.json()


def test_webhooks_are_listed_by_name(http: httpx2.Client) -> None:
    for name in ("b", "a"):
        define(http, name)
    assert [row["name"] for row in listed(models.Webhook, http.get("/v1/webhooks"))] == ["a", "b"]
    assert [row["name"] for row in walked(http, "/v1/webhooks")] == ["a", "b"]


def test_a_test_message_is_not_sent_to_where_it_must_not_go(
    http: httpx2.Client, server: Any
) -> None:
    define(http, url=f"{server.url}/v1/webhooks/in/self")
    tried = shaped(models.Tested, http.post("/v1/webhooks/ops/test"))
    assert tried["status"] is None
    assert "private" in tried["error"]
    assert http.get("/v1/events", params={"kind": "webhook.received"}).json()["items"] == []


def test_a_webhook_is_paused_resumed_and_removed(http: httpx2.Client) -> None:
    define(http)
    paused = shaped(models.Webhook, http.post("/v1/webhooks/ops/pause", json={"reason": "moving"}))
    assert (paused["status"], paused["reason"]) == ("paused", "moving")
    assert shaped(models.Webhook, http.post("/v1/webhooks/ops/resume"))["status"] == "active"
    assert http.get("/v1/webhooks/ops/deliveries").json()["items"] == []
    assert http.delete("/v1/webhooks/ops").status_code == 204
    assert code_of(http.get("/v1/webhooks/ops")) == (404, "unknown-webhook")


def test_tries_are_listed(http: httpx2.Client, sql: Conn) -> None:
    define(http)
    for status in (200, 500):
        sql.execute(
            "insert into treadle.webhook_deliveries (webhook, event_id, status)"
            " values ('ops', 1, %s)",
            [status],
        )
    rows = listed(models.Delivery, http.get("/v1/webhooks/ops/deliveries"))
    assert [row["status"] for row in rows] == [500, 200]
    assert len(walked(http, "/v1/webhooks/ops/deliveries")) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ops", {"url": "ftp://example.org"}),
        ("ops", {"url": "https://user@example.org/"}),
        ("ops", {"url": None}),
        ("ops", {"kinds": []}),
        ("ops", {"format": "xml"}),
        ("ops", {"secret": "x" * 40}),
        ("ops", {"color": "red"}),
        ("a b", {}),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(
    http: httpx2.Client, name: str, said: dict[str, Any]
) -> None:
    answer = http.put(f"/v1/webhooks/{name}", json={**OPS, **said})
    assert code_of(answer) == (422, "invalid-argument")
    assert http.get("/v1/webhooks").json()["items"] == []


def test_a_webhook_is_not_called_as_the_way_in(http: httpx2.Client) -> None:
    answer = http.put("/v1/webhooks/in", json=OPS)

    assert code_of(answer) == (422, "invalid-argument")
    assert "cannot be called in" in answer.json()["detail"]
    assert http.get("/v1/webhooks").json()["items"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/deliveries"), ("POST", "/pause"), ("POST", "/resume"),
     ("POST", "/rotate"), ("POST", "/test"), ("DELETE", "")],
)  # fmt: skip
def test_an_unknown_webhook_is_not_found(http: httpx2.Client, method: str, path: str) -> None:
    answer = http.request(method, f"/v1/webhooks/nobody{path}")
    assert code_of(answer) == (404, "unknown-webhook")


def test_a_call_from_outside_becomes_an_event(http: httpx2.Client) -> None:
    headers = {"X-GitHub-Event": "push", "Authorization": "Bearer x", "Cookie": "session=5"}
    answer = http.post("/v1/webhooks/in/git.hub", json={"ref": "main"}, headers=headers)
    received = shaped(models.Received, answer, 202)

    [event] = http.get("/v1/events", params={"kind": "webhook.received"}).json()["items"]
    assert (event["id"], event["key"]) == (received["event_id"], "git.hub")
    assert event["data"]["payload"] == {"ref": "main"}
    kept = event["data"]["headers"]
    assert (kept["x-github-event"], kept["content-type"]) == ("push", "application/json")
    assert not {"authorization", "cookie"} & set(kept)


@pytest.mark.parametrize("header", ["webhook-id", "Idempotency-Key", "X-GitHub-Delivery"])
def test_a_call_that_is_repeated_is_one_event(http: httpx2.Client, header: str) -> None:
    said = [http.post("/v1/webhooks/in/x", json=1, headers={header: "k"}).json() for _ in range(2)]
    assert said[0] == said[1]
    other = http.post("/v1/webhooks/in/y", json=1, headers={header: "k"}).json()
    assert other != said[0]


@pytest.mark.parametrize("body", [b"", b"{", b'"\\u0000"', b'{"a": NaN}', b"[" * 200 + b"]" * 200])
def test_invalid_json_is_rejected(http: httpx2.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = http.post("/v1/webhooks/in/x", content=body, headers=headers)
    assert code_of(answer) == (422, "invalid-argument")
    assert http.get("/v1/events").json()["items"] == []
