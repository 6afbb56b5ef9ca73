"""A nudge is sent once, delays nothing, and goes only to allowed addresses."""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from tests.drivers.processes import children
from tests.drivers.processes.children import rows
from tests.drivers.processes.harness import Site
from tests.drivers.webhooks import Receiver

until = partial(children.until, within=40)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


async def store(site: Site, url: str) -> str:
    query = "select id::text from treadle.enqueue_harness_task(%s, '{}')"
    [(task,)] = await rows(site.conn, query, url)
    return str(task)


@pytest.mark.requirement("H1")
async def test_an_agent_that_hangs_holds_up_neither_the_harness_nor_the_others(
    site: Site, receiver: Receiver
) -> None:
    hanging, redirecting, quick = (receiver.url(name) for name in ("hang", "moved", "quick"))
    receiver.modes["hang/task"] = "hang"
    receiver.modes["moved/task"] = 302
    receiver.headers["location"] = receiver.url("stolen")
    for url in (hanging, redirecting, quick):
        await site.allow(url)
    await store(site, hanging)
    child = site.harness("--drain-every", "600", harness_nudge_timeout_s=20)
    await until(lambda: receiver.tries["/hang/task"])

    await store(site, redirecting)
    tasks = [await store(site, quick) for _ in range(3)]
    await until(lambda: len(receiver.got["/quick/task"]) == 3)

    told = [json.loads(message.body) for message in receiver.got["/quick/task"]]
    assert sorted(each["task_id"] for each in told) == sorted(tasks)
    await child.logged("harness.nudge_failed", agent_url=redirecting, error="answered 302")
    assert not receiver.asked
    # Nothing was said about the one that hangs, and what it has waits for it.
    assert child.events("harness.nudge_failed", agent_url=hanging) == []
    [(status,)] = await rows(
        site.conn, "select status from treadle.harness_tasks where agent_url = %s", hanging
    )
    assert status == "pending"


@pytest.mark.requirement("H1")
@pytest.mark.parametrize(
    ("private", "setting", "word"), [(False, 1, "allow_private"), (True, 0, "DISPATCH_PRIVATE")]
)
async def test_a_private_address_needs_both_permissions(
    site: Site, receiver: Receiver, private: bool, setting: int, word: str
) -> None:
    url = receiver.url("agent")
    await rows(site.conn, "select treadle.allow_nudges(%s, true, %s)", url, private)
    await store(site, url)

    child = site.harness(dispatch_private=setting)

    line = await child.logged("harness.nudge_failed", within=40, agent_url=url)
    assert word in line["error"]
    assert receiver.tries == {}
    noted = "select from treadle.harness_agent_status where nudge_error like %s"
    await until(lambda: rows(site.conn, noted, f"%{word}%"))


async def test_the_harness_connects_only_to_allowed_agents(site: Site, receiver: Receiver) -> None:
    allowed, other = receiver.url("allowed"), receiver.url("other")
    await store(site, other)
    await site.allow(allowed)
    site.harness()
    await store(site, allowed)

    await until(lambda: receiver.got["/allowed/task"])

    assert list(receiver.tries) == ["/allowed/task"]
