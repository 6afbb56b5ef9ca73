"""Paths are matched exactly: a trailing slash makes another path."""

import httpx2
import pytest

from tests.drivers.http.v1 import UNKNOWN_ID, code_of


@pytest.mark.parametrize(
    "path", ["/health", "/docs", "/problems", "/v1/queues", f"/v1/tasks/{UNKNOWN_ID}/result"]
)
def test_a_path_with_a_trailing_slash_is_not_found(http: httpx2.Client, path: str) -> None:
    answer = http.get(f"{path}/")

    assert code_of(answer) == (404, "not-found")
    assert "location" not in answer.headers
