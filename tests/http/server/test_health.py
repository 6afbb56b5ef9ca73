"""The health routes of the server, and the format of errors."""

import time
from datetime import UTC, datetime

import httpx2
import pytest

from tests.drivers.http.servers import Conn


@pytest.mark.requirement("W14")
@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz"])
def test_the_health_route_returns_ok(http: httpx2.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"


@pytest.mark.requirement("W14")
@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz"])
def test_a_probe_may_ask_for_the_head_alone(http: httpx2.Client, path: str) -> None:
    answer = http.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == http.get(path).headers["content-length"]
    assert list(http.get("/openapi.json").json()["paths"][path]) == ["get"]


def test_an_unknown_path_is_a_problem_document(http: httpx2.Client) -> None:
    answer = http.get("/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "/problems/not-found",
        "title": "Not found",
        "status": 404,
        "detail": "Not Found",
        "code": "not-found",
        "instance": "/nowhere",
    }


def test_a_wrong_method_is_a_problem_document(http: httpx2.Client) -> None:
    answer = http.delete("/healthz")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method-not-allowed"
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/work", "GET, POST"), ("/work/x", "DELETE, GET, PATCH"), ("/projects/x", "GET, PATCH")],
)
def test_a_wrong_method_gets_a_list_of_the_allowed_ones(
    http: httpx2.Client, path: str, allowed: str
) -> None:
    answer = http.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_readiness_fails_quickly_while_the_database_hangs(http: httpx2.Client, sql: Conn) -> None:
    with sql.transaction():
        sql.execute("lock table treadle.migrations")
        began = time.monotonic()

        answer = http.get("/health")

        # The table is still locked: the answer did not wait for it.
        assert time.monotonic() - began > 2
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.json()["detail"] == "the database did not respond within 3 s"
    assert datetime.fromisoformat(answer.json()["last_contact_at"]) < datetime.now(UTC)
    assert http.get("/health").status_code == 200
