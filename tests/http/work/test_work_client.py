"""The client for dispatchers, against a real server."""

import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.servers import Conn, Served
from tests.drivers.http.work import Item, Meddling, aged, brought, change, get
from treadle.client import Conflict, InvalidRequest, NotFound, Unreachable, WorkQueue


class Losing(httpx2.BaseTransport):
    """Sends every request; the answers to the first ones are lost on the way."""

    def __init__(self, answers: int) -> None:
        self.left = answers
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._inner.handle_request(request)
        if self.left > 0:
            self.left -= 1
            response.read()
            raise httpx2.ReadError("the answer was lost", request=request)
        return response


class Refusing(httpx2.BaseTransport):
    """A server that rejects updates of one item."""

    def __init__(self, item: Item) -> None:
        self._path = f"/work/{item['id']}"
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path == self._path:
            return httpx2.Response(422, json={"detail": "not this one"}, request=request)
        return self._inner.handle_request(request)


@pytest.fixture
def queue(server: Served, http: httpx2.Client) -> Iterator[WorkQueue]:
    with WorkQueue(server.url) as queue:
        yield queue


@pytest.mark.requirement("W12")
def test_a_dispatcher_adds_dispatches_updates_and_lists(
    queue: WorkQueue, http: httpx2.Client
) -> None:
    project = http.post("/projects", json={"name": "P"}).json()["id"]
    item = queue.work_add("code_review", "Review PR #3", {"pr": 3}, "steve-w", project)
    assert (item["status"], item["project_id"], item["payload"]) == ("queued", project, {"pr": 3})

    assert queue.work_dispatch(item["id"], "steve-w")["status"] == "in_progress"
    assert [each["id"] for each in queue.work_list("in_progress", "steve-w")] == [item["id"]]
    done = queue.work_update(item["id"], "completed", "success", "merged")
    assert (done["outcome"], done["notes"]) == ("success", "merged")
    assert queue.work_list(project_id=project) == [done]
    assert queue.work_list("completed", since=item["created_at"]) == [done]
    assert queue.work_get(item["id"])["dispatch_history"][0]["agent"] == "steve-w"

    other = queue.work_add("bug_fix", "Not needed")
    queue.work_cancel(other["id"])
    assert [each["status"] for each in queue.work_list()] == ["completed", "cancelled"]


@pytest.mark.requirement("W12")
def test_a_rejected_change_lists_what_is_allowed(queue: WorkQueue) -> None:
    item = queue.work_add("bug_fix", "Fix it")
    with pytest.raises(Conflict) as raised:
        queue.work_update(item["id"], "completed", "success")
    assert raised.value.allowed == ["cancelled", "dispatched"]
    with pytest.raises(NotFound):
        queue.work_get(str(uuid4()))
    with pytest.raises(InvalidRequest):
        queue.work_add("bug_fix", "Fix it", priority=9)


@pytest.mark.requirement("W12")
def test_an_id_of_another_task_is_not_a_work_item(queue: WorkQueue) -> None:
    with pytest.raises(InvalidRequest, match="the id of the work item is empty"):
        queue.work_get("")
    for stranger in ("../projects", "a/b", "?status=queued"):
        with pytest.raises((InvalidRequest, NotFound)):
            queue.work_get(stranger)


@pytest.mark.requirement("W12")
def test_a_time_without_zone_is_that_of_this_host(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = queue.work_add("bug_fix", "Fix it")
    for zone in ("America/New_York", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        an_hour = timedelta(hours=1)
        assert queue.work_list(since=datetime.now() - an_hour) == [item]  # noqa: DTZ005
        assert queue.work_list(since=datetime.now() + an_hour) == []  # noqa: DTZ005
    monkeypatch.undo()
    time.tzset()


@pytest.mark.requirement("W12")
def test_a_list_of_any_length_is_complete(queue: WorkQueue, sql: Conn) -> None:
    sql.execute("select treadle.create_work_item('x', n::text) from generate_series(1, 401) as n")
    assert len({item["id"] for item in queue.work_list()}) == 401


@pytest.mark.requirement("W11", "W12")
def test_the_stale_check_blocks_items_without_an_update(
    queue: WorkQueue, http: httpx2.Client, sql: Conn
) -> None:
    silent = brought(http, "in_progress")
    lively = queue.work_add("bug_fix", "Lively", agent="maria-k")
    queue.work_dispatch(lively["id"], "maria-k")
    assert queue.work_stale_check() == []
    aged(sql, silent, "31 minutes")
    aged(sql, lively, "29 minutes")

    [found] = queue.work_stale_check()

    assert (found["id"], found["status"]) == (silent["id"], "blocked")
    assert "timed out" in found["notes"]
    assert queue.work_stale_check() == []
    assert len(queue.work_stale_check(timedelta(minutes=28))) == 1


@pytest.mark.requirement("W11", "W12")
@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_stale_check_makes_room_for_its_note(
    queue: WorkQueue, http: httpx2.Client, sql: Conn, letter: str
) -> None:
    full = brought(http, "in_progress")
    change(http, full, notes=letter * 20_000)
    aged(sql, full, "31 minutes")

    [found] = queue.work_stale_check()

    assert re.fullmatch(f"…{letter}{{19000,}}\ntimed out: no update since .*Z", found["notes"])


@pytest.mark.requirement("W11", "W12")
def test_an_item_that_cannot_be_changed_does_not_keep_the_stale_check_from_the_others(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    bad = brought(http, "in_progress", priority=1)
    other = change(http, brought(http, "dispatched"), assigned_agent="maria-k")
    change(http, other, status="in_progress")
    for item in (bad, other):
        aged(sql, item, "31 minutes")

    with (
        WorkQueue(server.url, transport=Refusing(bad)) as queue,
        pytest.raises(InvalidRequest, match="not this one"),
    ):
        queue.work_stale_check()

    assert get(http, bad)["status"] == "in_progress"
    assert get(http, other)["status"] == "blocked"


@pytest.mark.requirement("W12")
def test_the_stale_check_skips_items_that_are_updated_concurrently(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    item = brought(http, "in_progress")
    aged(sql, item, "31 minutes")

    with WorkQueue(
        server.url, transport=Meddling(lambda: change(http, item, notes="here I am"))
    ) as queue:
        assert queue.work_stale_check() == []

    assert get(http, item)["status"] == "in_progress"


@pytest.mark.requirement("W5", "W12")
def test_every_call_survives_a_lost_answer_and_happens_once(
    server: Served, http: httpx2.Client
) -> None:
    with WorkQueue(server.url, transport=Losing(1)) as queue:
        item = queue.work_add("bug_fix", "Once")
    assert [each["id"] for each in http.get("/work").json()] == [item["id"]]
    for fields in (
        {"status": "dispatched", "assigned_agent": "steve-w"},
        {"status": "in_progress"},
        {"notes": "half way"},
        {"status": "blocked", "notes": "waits"},
        {"status": "in_progress"},
        {"status": "completed", "outcome": "success"},
    ):
        with WorkQueue(server.url, transport=Losing(1)) as queue:
            found = queue.work_update(item["id"], **fields)
        assert found["status"] == fields.get("status", "in_progress")
    assert len(get(http, item)["changes"]) == 7

    with (
        WorkQueue(server.url, transport=Losing(99), patience_s=0.3) as queue,
        pytest.raises(Unreachable),
    ):
        queue.work_list()
