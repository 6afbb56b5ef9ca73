"""The loop of agents: each dispatched item is processed once, by its agent."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.drivers.http.servers import Served
from tests.drivers.http.work import Item, Meddling, brought, change, get
from tests.drivers.processes.children import ROOT, until
from treadle.client import Conflict, WorkQueue


@pytest.fixture
def queue(server: Served, http: httpx2.Client) -> Iterator[WorkQueue]:
    with WorkQueue(server.url) as queue:
        yield queue


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
def test_work_that_raises_fails_its_item_and_resumed_items_are_included(
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
def test_a_result_that_is_too_long_for_notes_is_cut_and_the_item_ends(
    queue: WorkQueue, http: httpx2.Client
) -> None:
    item = brought(http, "dispatched")

    assert queue.work_mine("steve-w", lambda _: "x" + "é" * 20_000) == 1

    found = get(http, item)
    assert (found["status"], found["notes"]) == ("completed", "x" + "é" * 19_999)


@pytest.mark.requirement("W13")
@pytest.mark.parametrize("said", ["out\0put", "caf\udce9", {"ok": 1}, 5], ids=repr)
def test_an_item_ends_whatever_its_work_returns_or_raises(
    queue: WorkQueue, http: httpx2.Client, said: object
) -> None:
    def returns(_: Item) -> str | None:
        return said  # type: ignore[return-value]

    def fails(_: Item) -> str | None:
        raise ValueError(said)

    done = brought(http, "in_progress")
    assert queue.work_mine("steve-w", returns, resume=True) == 1
    failed = brought(http, "in_progress")
    with pytest.raises(ValueError, match=re.escape(str(said))):
        queue.work_mine("steve-w", fails, resume=True)

    assert [get(http, item)["status"] for item in (done, failed)] == ["completed", "failed"]
    assert queue.work_mine("steve-w", returns, resume=True) == 0


@pytest.mark.requirement("W13")
def test_an_item_that_was_given_to_another_agent_meanwhile_is_left_to_it(
    queue: WorkQueue, http: httpx2.Client
) -> None:
    first, second = (brought(http, "dispatched", description=str(n)) for n in range(2))

    def work(_: Item) -> None:
        change(http, second, assigned_agent="maria-k")

    assert queue.work_mine("steve-w", work) == 1

    assert get(http, first)["status"] == "completed"
    found = get(http, second)
    assert (found["status"], found["assigned_agent"]) == ("dispatched", "maria-k")


@pytest.mark.requirement("W13")
@pytest.mark.parametrize("status", ["blocked", "in_progress"])
def test_an_item_that_another_agent_got_while_it_was_worked_on_is_not_ended(
    queue: WorkQueue, http: httpx2.Client, status: str
) -> None:
    item = brought(http, "dispatched")

    def work(_: Item) -> str:
        change(http, item, status="blocked", notes="is it stuck?")
        change(http, item, assigned_agent="maria-k")
        change(http, item, status=status, notes="hers now")
        return "late"

    with pytest.raises(Conflict, match="maria-k"):
        queue.work_mine("steve-w", work)

    found = get(http, item)
    assert (found["status"], found["notes"]) == (status, "hers now")


@pytest.mark.requirement("W13")
def test_an_item_that_another_agent_gets_just_before_it_is_picked_up_again_stays_there(
    server: Served, http: httpx2.Client
) -> None:
    item = brought(http, "in_progress")

    def meddle() -> None:
        if get(http, item)["status"] == "blocked":
            change(http, item, assigned_agent="maria-k")

    def work(_: Item) -> None:
        change(http, item, status="blocked", notes="is it stuck?")

    with (
        WorkQueue(server.url, transport=Meddling(meddle)) as queue,
        pytest.raises(Conflict, match="changed since"),
    ):
        queue.work_mine("steve-w", work, resume=True)

    found = get(http, item)
    assert (found["status"], found["assigned_agent"]) == ("blocked", "maria-k")


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
    with polling(words, tmp_path / "agent.log"):
        anyio.run(until, lambda: get(http, item)["status"] == "completed")
        anyio.run(until, lambda: get(http, other)["status"] == "failed")
    assert get(http, item)["notes"] == "6 words"
    assert "do not know how" in get(http, other)["notes"]


@pytest.mark.requirement("W12", "W13")
def test_the_loop_of_the_example_does_what_a_dispatcher_has_picked_up_for_it(
    server: Served, http: httpx2.Client, queue: WorkQueue, tmp_path: Path
) -> None:
    words = [sys.executable, "examples/work_agent.py", "--url", server.url, "--agent", "steve-w"]
    log = tmp_path / "agent.log"
    with polling(words, log):
        anyio.run(until, lambda: "did 0 items" in log.read_text())
        item = queue.work_add("count_words", "Three words more", agent="steve-w")
        queue.work_dispatch(item["id"], "steve-w")
        anyio.run(until, lambda: get(http, item)["status"] == "completed")


@contextmanager
def polling(words: list[str], log: Path) -> Iterator[None]:
    """The loop of the example, until the block ends."""
    with log.open("w") as out:
        agent = subprocess.Popen([*words, "--every", "0.1"], cwd=ROOT, stdout=out, stderr=out)
    try:
        yield
    finally:
        agent.kill()
        agent.wait()
