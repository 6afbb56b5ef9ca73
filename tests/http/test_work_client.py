"""The helper of dispatchers and the loop of agents, against a real server."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import anyio
import httpx2
import pytest

from tests.http.support import Conn, Served
from tests.http.work import Item, brought, change, get
from tests.process.support import ROOT, until
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


class Meddling(httpx2.BaseTransport):
    """Lets something happen each time between a list and what follows from it."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self._meddle = meddle
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._inner.handle_request(request)
        if request.method == "GET":
            self._meddle()
        return response


@pytest.fixture
def queue(server: Served, http: httpx2.Client) -> Iterator[WorkQueue]:
    with WorkQueue(server.url) as queue:
        yield queue


def aged(sql: Conn, item: Item, by: str) -> None:
    """As if an item had been changed last so long ago. The log is kept even from tests."""
    sql.execute("set session_replication_role = replica")
    sql.execute(
        "update treadle.work_log set at = at - %s::interval where task_id = %s", (by, item["id"])
    )
    sql.execute(
        "update treadle.tasks set created_at = created_at - %s::interval where id = %s",
        (by, item["id"]),
    )
    sql.execute("set session_replication_role = origin")


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
def test_what_is_refused_says_what_is_allowed(queue: WorkQueue) -> None:
    item = queue.work_add("bug_fix", "Fix it")
    with pytest.raises(Conflict) as raised:
        queue.work_update(item["id"], "completed", "success")
    assert raised.value.allowed == ["cancelled", "dispatched"]
    with pytest.raises(NotFound):
        queue.work_get(str(uuid4()))
    with pytest.raises(InvalidRequest):
        queue.work_add("bug_fix", "Fix it", priority=9)


@pytest.mark.requirement("W12")
def test_a_list_is_whole_however_long_it_is(queue: WorkQueue, sql: Conn) -> None:
    sql.execute("select treadle.add_work('x', n::text) from generate_series(1, 401) as n")
    assert len({item["id"] for item in queue.work_list()}) == 401


@pytest.mark.requirement("W11", "W12")
def test_the_stale_check_blocks_what_nobody_has_updated(
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


@pytest.mark.requirement("W12")
def test_the_stale_check_leaves_alone_what_is_updated_at_that_moment(
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


@pytest.mark.requirement("W13")
def test_an_agent_does_what_was_dispatched_to_it_one_after_the_other(
    queue: WorkQueue, http: httpx2.Client
) -> None:
    items = [brought(http, "dispatched", description=str(n)) for n in range(3)]
    brought(http, "queued", description="not dispatched", assigned_agent="steve-w")
    seen: list[str] = []

    def work(item: Item) -> str | None:
        seen.append(item["description"])
        assert item["status"] == "in_progress"
        assert [each["id"] for each in queue.work_list("in_progress")] == [item["id"]]
        if item["description"] == "0":
            # Somebody took it for stuck meanwhile.
            queue.work_update(item["id"], "blocked", notes="is it stuck?")
        if item["description"] == "1":
            queue.work_cancel(items[2]["id"])
        return f"did {item['description']}"

    assert queue.work_mine("steve-w", work) == 2
    assert seen == ["0", "1"]
    found = [get(http, item) for item in items]
    assert [each["status"] for each in found] == ["completed", "completed", "cancelled"]
    assert found[0]["notes"] == "did 0"
    assert queue.work_mine("steve-w", work) == 0


@pytest.mark.requirement("W13")
def test_work_that_raises_has_failed_and_what_was_begun_goes_on(
    queue: WorkQueue, http: httpx2.Client
) -> None:
    item = brought(http, "in_progress")

    def fail(_: Item) -> None:
        raise ValueError("no access")

    assert queue.work_mine("steve-w", fail) == 0
    with pytest.raises(ValueError, match="no access"):
        queue.work_mine("steve-w", fail, resume=True)
    found = get(http, item)
    assert (found["status"], found["notes"]) == ("failed", "ValueError: no access")


@pytest.mark.requirement("W13")
def test_the_example_polls_works_and_reports(
    server: Served, http: httpx2.Client, tmp_path: Path
) -> None:
    words = [sys.executable, "examples/work_agent.py", "--url", server.url, "--agent", "steve-w"]
    added = subprocess.run(
        [*words, "--add", "Count the words of this sentence"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    item = {"id": re.findall(r"dispatched (\S+)", added.stdout)[0]}
    other = brought(http, "dispatched", type="unheard_of")
    with (tmp_path / "agent.log").open("w") as log:
        agent = subprocess.Popen([*words, "--every", "0.1"], cwd=ROOT, stdout=log, stderr=log)
    try:
        anyio.run(until, lambda: get(http, item)["status"] == "completed")
        anyio.run(until, lambda: get(http, other)["status"] == "failed")
    finally:
        agent.kill()
        agent.wait()
    assert get(http, item)["notes"] == "6 words"
    assert "do not know how" in get(http, other)["notes"]
