"""Events over HTTP, in pages, newest first."""

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, walked
from tests.drivers.http.streams import emit
from tests.drivers.http.v1 import UNKNOWN_ID, code_of, enqueue
from treadle.api.v1 import events as models


def test_events_are_listed_newest_first_and_filtered(http: httpx2.Client, sql: Conn) -> None:
    ids = emit(sql, "a", "b") + emit(sql, "c", kind="other.word")
    rows = listed(models.EventDetails, http.get("/v1/events"))
    assert [row["id"] for row in rows] == ids[::-1]
    assert [row["id"] for row in walked(http, "/v1/events")] == ids[::-1]
    for query, expected in (
        ("kind=other.word", ids[2:]),
        ("kind=other.word&kind=word.said", ids[::-1]),
        ("key=a", ids[:1]),
        (f"task_id={UNKNOWN_ID}", []),
        (f"dag_id={UNKNOWN_ID}", []),
    ):
        assert [row["id"] for row in http.get(f"/v1/events?{query}").json()["items"]] == expected


def test_the_events_of_a_task_are_found(http: httpx2.Client) -> None:
    task = enqueue(http)
    http.post(f"/v1/tasks/{task}/cancel")
    rows = http.get("/v1/events", params={"task_id": task}).json()["items"]
    assert [row["kind"] for row in rows] == ["task.cancelled"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "cursor=nonsense", "cursor=W3RydWVd", "task_id=5", "kind=", "key=%00"],
)
def test_what_cannot_be_asked_is_refused(http: httpx2.Client, query: str) -> None:
    assert code_of(http.get(f"/v1/events?{query}")) == (422, "invalid-argument")
