"""What is said to an agent and what it answers: are you idle, take this, how is it, stop.

GET {url}/status, POST {url}/task, GET {url}/task/{id}, POST {url}/task/{id}/cancel.
"""

import dataclasses
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import anyio

from treadle.db.push import Dispatch
from treadle.json import clean_text
from treadle.services.outbound import (
    MOST_READ,
    AddressRefused,
    OutboundPolicy,
    read_prefix,
    request,
)

# What a request has; the rest of a spec is not the agent's business.
FIELDS = ("prompt", "model", "timeout_seconds", "session_id", "project", "env", "thinking")
# As much as the output of a task may have.
MOST_RESULT = 16 * 1024 * 1024
STATUS_S = 5.0
LOOK_S = 30.0
CANCEL_S = 5.0
LONGEST_ID = 500
GOING_ON = {"queued", "working", "running", "pending"}
# The words for an end; any other word means that it goes on.
ENDED = {name: name for name in ("completed", "failed", "cancelled")} | {"canceled": "cancelled"}


@dataclass(frozen=True)
class Reply:
    """What came of a request. Without a status there was no answer; sent: it may have arrived."""

    status: int | None
    error: str
    sent: bool = True
    body: Mapping[str, Any] | None = None
    too_large: bool = False

    @property
    def state(self) -> str | None:
        """How a task is going, in the agent's words; None when it does not say so."""
        if self.status != 200 or self.body is None:
            return None
        found = self.body.get("state", self.body.get("status"))
        if not isinstance(found, str) or not found:
            return None
        return ENDED.get(found.lower(), found.lower())

    @property
    def has_it(self) -> bool:
        """Whether the task is there: by a word that everybody knows, or by the agent's own id."""
        known = self.state in GOING_ON or self.state in ENDED
        return known or (self.state is not None and self.task_id is not None)

    @property
    def task_id(self) -> str | None:
        """The agent's own id of the task, where it can be asked for by it."""
        found = self.text("task_id")
        return None if found in (".", "..") else found

    def text(self, name: str) -> str | None:
        """A name or id in the answer, as text that can be stored."""
        found = self.body.get(name) if self.body is not None else None
        if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
            return None
        text = clean_text(str(found))
        return text if len(text) <= LONGEST_ID else None

    def complaint(self) -> str | None:
        """What the agent says went wrong."""
        found = (self.body or {}).get("error") or (self.body or {}).get("detail")
        if isinstance(found, Mapping):
            found = found.get("message") or found
        return clean_text(str(found), limit=1500) if found else None


@dataclass(frozen=True)
class Health:
    """Whether an agent could take a task, by which word of its own; or what is wrong with it."""

    idle: bool = False
    said: str | None = None
    wrong: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> "Health":
        """By the state; without one `idle: true` will do, whatever the status is called."""
        state = reply.text("state")
        said = state or reply.text("status")
        idle = state is None and reply.body is not None and reply.body.get("idle") is True
        return cls(idle=idle or (said or "").lower() == "idle", said=said)


class AgentClient:
    """Requests to one agent, each to an address that is judged anew."""

    def __init__(
        self, transport: Any, policy: OutboundPolicy, url: str, allow_private: bool
    ) -> None:
        self._transport = transport
        self._policy = policy
        self._url = url.rstrip("/")
        self._allowed = allow_private

    async def health(self) -> Health:
        """Whether it could take a task now."""
        reply = await self._ask("GET", "/status", within_s=STATUS_S)
        if reply.status != 200:
            return Health(wrong=reply.error)
        if reply.body is None:
            return Health(wrong=f"{reply.error} without a JSON object")
        return Health.of(reply)

    async def submit(self, dispatch: Dispatch) -> Reply:
        """Hand it a task, under the same key each time."""
        spec = dispatch.spec if isinstance(dispatch.spec, dict) else {}
        given = {name: spec[name] for name in FIELDS if spec.get(name) is not None}
        return await self._ask(
            "POST",
            "/task",
            within_s=self._policy.timeout_s,
            headers={"content-type": "application/json", "idempotency-key": dispatch.key},
            body=json.dumps({**given, "queue_id": dispatch.queue_id}).encode(),
        )

    async def look(self, task_id: str) -> Reply:
        """How a task is going, by the agent's id or by ours."""
        return await self._ask(
            "GET", f"/task/{quote(task_id, safe='')}", within_s=LOOK_S, most=MOST_RESULT
        )

    async def cancel(self, task_id: str) -> Reply:
        return await self._ask("POST", f"/task/{quote(task_id, safe='')}/cancel", within_s=CANCEL_S)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        within_s: float,
        most: int = MOST_READ,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        """One request; whatever the other side does, this ends in time with a reply."""
        import httpx2

        timeout_s = min(within_s, self._policy.timeout_s)
        status: int | None = None
        raw = b""
        try:
            with anyio.fail_after(timeout_s):
                response = await request(
                    self._transport,
                    method,
                    httpx2.URL(f"{self._url}{path}"),
                    policy=dataclasses.replace(self._policy, timeout_s=timeout_s),
                    allowed=self._allowed,
                    headers={"accept": "application/json", **(headers or {})},
                    body=body,
                )
                status = response.status_code
                try:
                    raw = await read_prefix(response, most)
                finally:
                    with anyio.move_on_after(1, shield=True):
                        await response.aclose()
        except (
            *(AddressRefused, socket.gaierror, httpx2.InvalidURL),
            *(httpx2.ConnectError, httpx2.ConnectTimeout, UnicodeError),
        ) as problem:
            return Reply(None, _said(problem, timeout_s), sent=False)
        except (httpx2.HTTPError, OSError, ValueError) as problem:
            # Of a refusal the status is enough; what was taken would have come with its id.
            if status is None or 200 <= status < 300:
                return Reply(None, _said(problem, timeout_s))
        reply = Reply(status, f"answered {status}", body=_object(raw), too_large=len(raw) >= most)
        complaint = reply.complaint() if not 200 <= status < 300 else None
        return dataclasses.replace(
            reply, error=f"{reply.error}: {complaint}" if complaint else reply.error
        )


def _object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _said(problem: BaseException, timeout_s: float) -> str:
    import httpx2

    if isinstance(problem, (TimeoutError, httpx2.TimeoutException)):
        return f"no answer within {timeout_s:g} s"
    text = str(problem).strip() or type(problem).__name__
    return text if isinstance(problem, AddressRefused) else f"{type(problem).__name__}: {text}"
