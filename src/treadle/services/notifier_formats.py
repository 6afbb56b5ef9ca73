"""What is sent: the document of an event as it is, or a sentence for people; and signatures."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_TEXT = 3000
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"})
_SENTENCES = {
    "task.dead_lettered": "{task} gave up",
    "task.completed": "{task} is completed",
    "task.cancelled": "{task} was cancelled",
    "dag.completed": "{dag} is completed",
    "dag.failed": "{dag} failed",
    "dag.cancelled": "{dag} was cancelled",
    "queue.paused": "Queue {queue} is paused",
    "queue.resumed": "Queue {queue} goes on",
    "agent.silent": "An agent is silent",
    "budget.exhausted": "A budget is exhausted",
    "breaker.opened": "A type is kept back because its tasks fail",
    "breaker.closed": "A type that was kept back works again",
    "gate.closed": "A gate is closed",
    "gate.opened": "A gate is open again",
    "wait.opened": "{task} waits for an answer",
    "webhook.failing": "A webhook fails again and again",
    "webhook.recovered": "A webhook works again",
    "webhook.test": "This is a test",
}


def signatures(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The signature header of Standard Webhooks: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def body_of(form: str, document: str) -> bytes:
    """The body of a message."""
    if form != "slack":
        return document.encode()
    text = sentence(json.loads(document))
    return json.dumps({"text": text, "unfurl_links": False, "unfurl_media": False}).encode()


def sentence(event: Mapping[str, Any]) -> str:
    """An event in words, with nothing in it that could be a link, a mention or markup."""
    kind = str(event["type"])
    task, dag, queue = event.get("task_id"), event.get("dag_id"), event.get("queue")
    type_ = event.get("task_type")
    begin = _SENTENCES.get(kind, "{kind}").format(
        kind=kind,
        task=(f"Task {task}" if task else "A task") + (f" ({type_})" if type_ else ""),
        dag=f"DAG {dag}" if dag else "A DAG",
        queue=queue or "?",
    )
    where = [
        f"{word} {value}"
        for word, value in (
            ("queue", queue),
            ("task", task),
            ("DAG", dag),
            ("key", event.get("key")),
        )
        if value and str(value) not in begin
    ]
    facts = [f"{name}: {_short(value)}" for name, value in _facts(event.get("data"))]
    told = ", ".join([begin, *where]) + (f" ({'; '.join(facts)})" if facts else "")
    if kind in _SENTENCES:
        told += f" [{kind}]"
    # Letters that begin a link lose their power by a space that has no width.
    safe = told.translate(_ESCAPES).replace("://", ":\u200b//")
    return safe[:LONGEST_TEXT]


def _facts(data: object) -> list[tuple[str, Any]]:
    if not isinstance(data, Mapping):
        return [] if data is None else [("data", data)]
    return [(str(name), value) for name, value in list(data.items())[:10] if value is not None]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"
