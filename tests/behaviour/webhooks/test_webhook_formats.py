"""The sentences for chats, and the completed tasks that webhooks get."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.webhooks import Receiver, add, due, emit, hook, numbers
from treadle.services.notifier import Notifier, http
from treadle.services.notifier.http import body_of, sentence

TASK = "0199aaaa-0000-7000-8000-000000000001"


def text_of(**event: object) -> str:
    return sentence({"type": "task.dead_lettered", "data": {}, **event})


@pytest.mark.requirement("F23")
async def test_a_chat_gets_a_sentence_for_people(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    add(driver, "chat", receiver.url("chat"), kinds=["task.dead_lettered"], format="slack")
    task_id = driver.enqueue(max_attempts=1)
    driver.fail(driver.claim_one("a"))

    await notifier.tick()

    [message] = receiver.got["/chat"]
    body = json.loads(message.body)
    assert body["text"].startswith(f"Task {task_id} (code) was dead-lettered, queue default (")
    assert body["text"].endswith("[task.dead_lettered]")
    assert (body["unfurl_links"], body["unfurl_media"]) == (False, False)


@pytest.mark.parametrize(
    ("event", "begins"),
    [
        ({"task_id": TASK, "task_type": "mail"}, f"Task {TASK} (mail) was dead-lettered"),
        ({"type": "dag.completed", "dag_id": TASK}, f"DAG {TASK} is completed"),
        ({"type": "queue.paused", "queue": "mail"}, "Queue mail is paused"),
        ({"type": "invoice.paid", "key": "4711"}, "invoice.paid, key 4711"),
        ({"type": "x", "data": {"why": "a\nb"}}, "x (why: a b)"),
        ({"type": "x", "data": [1, None]}, "x (data: [1, null])"),
        ({"type": "{queue}", "data": None}, "{queue}"),
    ],
)
def test_every_event_has_a_sentence(event: dict[str, object], begins: str) -> None:
    assert text_of(**event).startswith(begins)


def test_a_slack_sentence_has_no_mentions_and_no_links() -> None:
    text = text_of(
        key="<!channel> @here", data={"a": "<https://evil.example|click> & https://evil.example"}
    )

    assert not {"<", ">"} & set(text)
    for live in ("://", "@here"):
        assert live not in text
    assert "&lt;!channel&gt;" in text


def test_a_sentence_stays_short() -> None:
    assert len(text_of(data={str(n): "x" * 9000 for n in range(50)})) <= 3000


def test_a_document_is_sent_as_it_is() -> None:
    document = '{"data": {"n": 1e400, "big": 12345678901234567890123}}'

    assert body_of("standard", document) == document.encode()


def complete(driver: Driver, **options: object) -> None:
    driver.enqueue(**options)  # type: ignore[arg-type]
    driver.complete(driver.claim_one("a"))


async def test_completed_tasks_are_sent_to_webhooks_that_select_them_also_after_a_pause(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    add(driver, "any", receiver.url("any"), kinds=["*"])
    complete(driver)
    add(driver, "done", receiver.url("done"), kinds=["task.completed"])
    driver.rows("select treadle.pause_webhook('done')")
    complete(driver)
    driver.rows("select treadle.resume_webhook('done')")

    await notifier.tick()

    events = [json.loads(each.body) for each in receiver.got["/any"]]
    assert [each["type"] for each in events].count("task.completed") == 1
    [message] = receiver.got["/done"]
    assert json.loads(message.body)["task_type"] == "code"


async def test_a_receiver_that_asks_for_time_gets_it(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    add(driver, "ops", receiver.url("ops"))
    receiver.modes["ops"] = 429
    receiver.headers["retry-after"] = "600"
    emit(driver, 1)

    await notifier.tick()

    wait = "select extract(epoch from next_try_at - last_try_at) from treadle.webhooks"
    assert 599 < driver.value(wait) < 601


async def test_a_missing_extra_is_reported_and_does_not_delay_others(
    driver: Driver, receiver: Receiver, notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(driver, "ops", receiver.url("ops"))
    url = "redis://127.0.0.1:1"
    settings = {"url": url, "format": "redis", "stream": "s", "kinds": ["test.*"]}
    driver.rows("select treadle.define_webhook('feed', %s::jsonb)", json.dumps(settings))
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)
    emit(driver, 1)

    await notifier.tick()

    assert "treadle[redis]" in str(hook(driver, "feed")["last_error"])
    assert numbers(receiver.got["/ops"]) == [1]


async def test_a_fault_of_ours_is_a_failed_try_and_not_the_end(
    driver: Driver, receiver: Receiver, notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(driver, "ops", receiver.url("ops"))
    emit(driver, 1)
    with monkeypatch.context() as broken:
        broken.setattr(http, "body_of", lambda *_: Path(1))  # type: ignore[arg-type]
        await notifier.tick()
    assert hook(driver, "ops")["last_error"] == "cannot be sent: TypeError"

    due(driver)
    await notifier.tick()

    assert numbers(receiver.got["/ops"]) == [1]


async def test_the_example_in_the_docs_accepts_only_signed_messages(
    driver: Driver, receiver: Receiver, notifier: Notifier
) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/send-events-elsewhere.md").read_text()
    pasted: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], pasted)
    is_genuine = pasted["is_genuine"]
    former = add(driver, "ops", receiver.url("ops"))
    secret = driver.value("select treadle.rotate_webhook('ops')")
    emit(driver, 1)
    await notifier.tick()

    [message] = receiver.got["/ops"]
    headers = message.headers
    assert is_genuine(secret, headers, message.body)
    assert is_genuine(former, headers, message.body)
    assert not is_genuine(secret, headers, message.body + b" ")
    assert not is_genuine(secret, {**headers, "webhook-id": "msg_other"}, message.body)
    old = str(int(headers["webhook-timestamp"]) - 400)
    assert not is_genuine(secret, {**headers, "webhook-timestamp": old}, message.body)
    assert not is_genuine("whsec_" + "QUJD" * 11, headers, message.body)
