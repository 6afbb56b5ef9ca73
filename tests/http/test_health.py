"""The server says whether it lives, and every error has one shape."""

import httpx2
import pytest


@pytest.mark.requirement("W14")
@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz"])
def test_it_says_that_it_is_well(http: httpx2.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"


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
    assert answer.headers["allow"] == "GET"
