"""A notifier with endpoints of every kind may be stopped, duplicated and killed."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn, rows
from tests.drivers.processes.notifiers import SETTINGS, due, emit, until
from tests.drivers.webhooks import Receiver

BAD = {
    "failing": 500,
    "moved": 301,
    "hanging": "hang",
    "dripping": "drip",
    "flooding": "flood",
    "heading": "headers",
    "resetting": "reset",
    "babbling": "garbage",
}
# Each try takes the whole timeout.
SLOW = {"hanging", "dripping"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def nobody() -> int:
    """A port where no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def add(conn: Conn, name: str, url: str, **settings: object) -> None:
    given = {"url": url, "kinds": ["test.*"], "allow_private": True, **settings}
    await conn.execute("select treadle.define_webhook(%s, %s::jsonb)", (name, json.dumps(given)))


async def expire_leases(conn: Conn) -> None:
    await conn.execute(
        "update treadle.webhooks set lease_until = clock_timestamp() where token is not null"
    )


def numbers(receiver: Receiver, name: str) -> list[int]:
    return [json.loads(each.body)["data"]["n"] for each in receiver.got[f"/{name}"]]


def memory(child: Child, what: str) -> float:
    """Megabytes of a process: VmRSS now, VmHWM at most so far."""
    text = Path(f"/proc/{child.pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.requirement("F23")
async def test_bad_endpoints_lose_no_events_keep_their_order_and_do_not_delay_others(
    conn: Conn, spawn: Spawn, receiver: Receiver, nobody: int
) -> None:
    for name in ("good", "better"):
        await add(conn, name, receiver.url(name))
    child = spawn("notifier", own_interpreter=True, **{**SETTINGS, "webhook_timeout_s": 5})
    await emit(conn, 0, 0)
    await until(lambda: numbers(receiver, "good") == numbers(receiver, "better") == [0])
    start = memory(child, "VmRSS")
    for name, mode in BAD.items():
        receiver.modes[name] = mode
        await add(conn, name, receiver.url(name))
    await add(conn, "down", f"http://127.0.0.1:{nobody}/down")
    receiver.modes["generous"] = "generous"
    await add(conn, "generous", receiver.url("generous"))
    receiver.headers["location"] = receiver.url("elsewhere")

    for first in range(1, 41, 10):
        await emit(conn, first, first + 9, size=10_000)
        await due(conn)
        await until(lambda last=first + 9: numbers(receiver, "good")[-1:] == [last])

    every = list(range(1, 41))
    await until(lambda: numbers(receiver, "better") == [0, *every])
    assert numbers(receiver, "good") == [0, *every]
    await until(lambda: numbers(receiver, "generous") == every)
    await until(lambda: _tried_again(conn, receiver))
    assert [numbers(receiver, name) for name in BAD] == [[]] * len(BAD)
    for name in BAD:
        receiver.modes[name] = 200
    with Receiver(nobody) as revived:
        await due(conn)
        for name in BAD:
            await until(lambda name=name: _all(conn, receiver, name, every))
        await until(lambda: _all(conn, revived, "down", every))
    assert (receiver.asked, receiver.got["/elsewhere"]) == ([], [])
    assert child.running
    grown = memory(child, "VmHWM") - start
    assert grown < 60, f"{start:.0f} MB at the start, {grown:.1f} MB more at most"


async def _tried_again(conn: Conn, receiver: Receiver) -> bool:
    await due(conn)
    return all(len(receiver.tries[f"/{name}"]) >= (1 if name in SLOW else 2) for name in BAD)


async def _all(conn: Conn, receiver: Receiver, name: str, every: list[int]) -> bool:
    await due(conn)
    return numbers(receiver, name) == every


@pytest.mark.requirement("F23")
async def test_killed_after_it_has_sent_the_next_one_repeats_it_with_the_same_id(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    await add(conn, "ops", receiver.url("ops"))
    await emit(conn, 1, 5)
    receiver.modes["ops"] = "kill"
    first = spawn("notifier", **SETTINGS)
    receiver.victims.append(first.pid)
    assert await first.exit_code(within=30) == -signal.SIGKILL
    assert numbers(receiver, "ops") == [1]

    spawn("notifier", **SETTINGS)
    await expire_leases(conn)

    await until(lambda: len(receiver.got["/ops"]) >= 6)
    assert numbers(receiver, "ops") == [1, 1, 2, 3, 4, 5]
    ids = receiver.ids("ops")
    assert ids[0] == ids[1]
    assert len(set(ids)) == 5
    await until(lambda: rows(conn, "select from treadle.webhooks where delivered = 5"))


@pytest.mark.requirement("F23")
async def test_two_notifiers_send_each_event_once_and_in_order(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    names = [f"hook{number}" for number in range(6)]
    for name in names:
        await add(conn, name, receiver.url(name))
    pair = [spawn("notifier", **SETTINGS, webhook_slots=2) for _ in range(2)]
    for each in pair:
        await each.logged("notifier.started", within=30)

    for first in range(1, 31, 5):
        await emit(conn, first, first + 4)
    for name in names:
        await until(lambda name=name: len(receiver.got[f"/{name}"]) >= 30)

    for name in names:
        assert numbers(receiver, name) == list(range(1, 31))
    await until(lambda: all(each.events("events.delivered") for each in pair))


async def test_a_notifier_that_was_stopped_for_long_sends_nothing_more(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    await add(conn, "ops", receiver.url("ops"))
    receiver.modes["ops"] = "held"
    await emit(conn, 1, 5)
    first = spawn("notifier", **SETTINGS)
    await until(lambda: receiver.tries["/ops"])
    await first.pause()
    receiver.let_go.set()
    await until(lambda: numbers(receiver, "ops") == [1])
    await expire_leases(conn)
    receiver.modes["ops"] = 200
    second = spawn("notifier", **SETTINGS)
    await until(lambda: numbers(receiver, "ops") == [1, 1, 2, 3, 4, 5])

    await until(lambda: rows(conn, "select from treadle.webhooks where token is null"))
    second.kill()
    first.send(signal.SIGCONT)
    await emit(conn, 6, 6)

    await until(lambda: numbers(receiver, "ops")[-1] == 6)
    assert numbers(receiver, "ops") == [1, 1, 2, 3, 4, 5, 6]


async def test_sigterm_ends_the_notifier_also_while_an_endpoint_hangs(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    await add(conn, "ops", receiver.url("ops"))
    receiver.modes["ops"] = "hang"
    await emit(conn, 1, 1)
    child = spawn("notifier", **{**SETTINGS, "webhook_timeout_s": 1})
    await until(lambda: receiver.tries["/ops"])

    child.send(signal.SIGTERM)

    assert await child.exit_code() == 0
    assert await rows(conn, "select token, failures from treadle.webhooks") == [(None, 1)]


async def test_without_permission_of_the_settings_nothing_is_sent_to_this_host(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    await add(conn, "ops", receiver.url("ops"))
    await emit(conn, 1, 1)

    child = spawn("notifier")

    line = await child.logged("webhook.failed", within=30, webhook="ops")
    assert "TREADLE_WEBHOOK_PRIVATE" in line["error"]
    assert receiver.tries == {}
    assert "whsec_" not in child.log.read_text()


@pytest.mark.requirement("F23")
async def test_it_is_woken_by_an_event_that_a_webhook_wants(
    conn: Conn, spawn: Spawn, receiver: Receiver
) -> None:
    await add(conn, "ops", receiver.url("ops"))
    child = spawn("notifier", **{**SETTINGS, "service_s": 600})
    await emit(conn, 1, 1)
    await until(lambda: numbers(receiver, "ops") == [1])
    await until(lambda: rows(conn, "select from treadle.webhooks where token is null"))
    assert child.running

    await emit(conn, 2, 2)

    await until(lambda: numbers(receiver, "ops") == [1, 2])
