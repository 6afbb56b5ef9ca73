"""Events arrive at webhooks signed, in order and at least once; redirects are not followed."""

import base64
import hashlib
import hmac
import json

import pytest

from tests.drivers.engine import Driver
from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.webhooks import Message, Receiver, add, due, emit, hook, numbers
from treadle import Treadle
from treadle.services.notifier import Notifier
from treadle.settings import load_settings


def verified(message: Message, secret: str) -> bool:
    """As a receiver would do it, from the description of Standard Webhooks."""
    key = base64.b64decode(secret[len("whsec_") :])
    content = b".".join(
        [message.id.encode(), message.headers["webhook-timestamp"].encode(), message.body]
    )
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    given = [each.split(",", 1) for each in message.headers["webhook-signature"].split(" ")]
    return any(
        version == "v1" and hmac.compare_digest(signature, expected) for version, signature in given
    )


@pytest.mark.requirement("F23")
async def test_events_arrive_in_order_with_what_they_are_about(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    add(driver, "ops", receiver.url("ops"))
    emit(driver, *range(1, 8))

    assert await notifier.tick() == 1

    got = receiver.got["/ops"]
    assert numbers(got) == [1, 2, 3, 4, 5, 6, 7]
    first = json.loads(got[0].body)
    event_id, at = driver.rows("select id, at from treadle.events where kind = 'test.counted'")[0]
    assert first["type"] == "test.counted"
    assert first["id"] == str(event_id)
    assert first["timestamp"] == f"{at.astimezone():%Y-%m-%dT%H:%M:%S.%f}Z"
    assert got[0].headers["content-type"] == "application/json"
    assert len(set(receiver.ids("ops"))) == 7
    found = hook(driver, "ops")
    assert (found["delivered"], found["unread"], found["delivering"]) == (7, 0, None)


@pytest.mark.requirement("F23")
async def test_a_receiver_can_verify_signatures_during_a_secret_rotation(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    former = add(driver, "ops", receiver.url("ops"))
    emit(driver, 1)
    await notifier.tick()
    secret = driver.value("select treadle.rotate_webhook('ops', 60)")
    emit(driver, 2)
    await notifier.tick()
    driver.rows("update treadle.webhooks set previous_until = treadle.clock()")
    emit(driver, 3)
    await notifier.tick()

    one, two, three = receiver.got["/ops"]
    assert [verified(each, former) for each in (one, two, three)] == [True, True, False]
    assert [verified(each, secret) for each in (one, two, three)] == [False, True, True]
    forged = Message(one.path, one.headers, one.body.replace(b"1", b"9"))
    assert not verified(forged, former)


@pytest.mark.requirement("F23")
async def test_the_known_signature_of_a_known_message() -> None:
    from treadle.services.notifier.http import signatures

    # The example in the description of Standard Webhooks.
    found = signatures(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )

    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_a_webhook_gets_only_the_events_that_it_selects(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    add(driver, "exact", receiver.url("exact"), kinds=["test.a"])
    add(driver, "some", receiver.url("some"), kinds=["test.*"], filter={"data": {"n": 2}})
    add(driver, "queue", receiver.url("queue"), kinds=["queue.*"], filter={"queue": "default"})
    for kind in ("test.a", "test.b"):
        emit(driver, 1, 2, kind=kind)
    driver.rows("select treadle.pause_queue('default')")

    await notifier.tick()

    kinds = {
        path: [json.loads(each.body)["type"] for each in messages]
        for path, messages in receiver.got.items()
    }
    assert kinds == {
        "/exact": ["test.a", "test.a"],
        "/some": ["test.a", "test.b"],
        "/queue": ["queue.paused"],
    }
    assert [
        found["unread"] for found in driver.records("select * from treadle.webhook_status")
    ] == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        (500, "answered 500"),
        (404, "answered 404"),
        (302, "answered 302: redirects are not followed"),
        ("hang", "no response within 1 s"),
        ("drip", "no response within 1 s"),
        ("headers", "RemoteProtocolError: "),
        ("flood", "answered 500"),
        ("reset", "ReadError"),
        ("garbage", "RemoteProtocolError: "),
    ],
)
@pytest.mark.requirement("F23")
async def test_an_endpoint_that_fails_gets_the_same_event_again_and_then_the_rest(
    driver: Driver, receiver: Receiver, notifier: Notifier, mode: str | int, error: str
) -> None:
    add(driver, "bad", receiver.url("bad"))
    receiver.headers["location"] = receiver.url("elsewhere")
    receiver.modes["bad"] = mode
    emit(driver, 1, 2, 3)

    await notifier.tick()
    found = hook(driver, "bad")
    assert str(found["last_error"]).startswith(error)
    assert (found["failures"], found["delivered"], found["status"]) == (1, 0, "active")
    assert await notifier.tick() == 0  # it waits
    receiver.modes["bad"] = 200
    due(driver)
    await notifier.tick()

    assert numbers(receiver.got["/bad"]) == [1, 2, 3]
    tried = [each.id for each in receiver.tries["/bad"]]
    assert tried == [receiver.ids("bad")[0], *receiver.ids("bad")]
    assert (receiver.asked, receiver.got["/elsewhere"]) == ([], [])
    assert (hook(driver, "bad")["failures"], hook(driver, "bad")["last_error"]) == (0, None)


@pytest.mark.parametrize("mode", ["generous", "trickle"])
async def test_what_is_accepted_has_arrived_however_long_the_answer(
    driver: Driver, receiver: Receiver, notifier: Notifier, mode: str
) -> None:
    add(driver, "long", receiver.url("long"))
    receiver.modes["long"] = mode
    emit(driver, 1, 2)

    await notifier.tick()

    assert numbers(receiver.got["/long"]) == [1, 2]
    assert hook(driver, "long")["delivered"] == 2


async def test_an_endpoint_is_released_after_its_connection_stopped_responding(
    driver: Driver, receiver: Receiver
) -> None:
    add(driver, "ops", receiver.url("ops"))
    emit(driver, 1)
    async with Proxy(driver.url) as proxy:
        settings = load_settings(
            database_url=proxy.url,
            prepare=False,
            notify=False,
            # Longer than the notifier waits for the same call when it stops.
            call_timeout_s=2.5,
            webhook_private=True,
        )
        async with Treadle(settings=settings) as app:
            notifier = Notifier(app.db)
            notifier.configure(settings)
            proxy.lose("release_webhook", "silent")

            assert await notifier.tick() == 1

    assert proxy.swallowed > 0
    assert driver.rows("select token from treadle.webhooks") == [(None,)]
