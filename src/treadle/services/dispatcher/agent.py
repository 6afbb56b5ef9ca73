"""The client of one agent: check whether it is idle, submit, track and cancel tasks.

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
    MAX_READ_BYTES,
    AddressRefused,
    OutboundPolicy,
    read_prefix,
    request,
)

# The fields of a spec that are sent to the agent.
FIELDS = ("prompt", "model", "timeout_seconds", "session_id", "project", "env", "thinking")
# The maximum size of the output of a task.
MAX_RESULT_BYTES = 16 * 1024 * 1024
STATUS_S = 5.0
LOOK_S = 30.0
CANCEL_S = 5.0
MAX_ID = 500
ACTIVE = {"queued", "working", "running", "pending"}
# Final states; a task in any other state is still active.
ENDED = {name: name for name in ("completed", "failed", "cancelled")} | {"canceled": "cancelled"}


@dataclass(frozen=True)
class Reply:
    """The result of a request.

    `status` is None if there was no response; `sent` says whether the request may have arrived.
    """

    status: int | None
    error: str
    sent: bool = True
    body: Mapping[str, Any] | None = None
    too_large: bool = False

    @property
    def state(self) -> str | None:
        """The state of a task, in lower case; None if the response has none."""
        if self.status != 200 or self.body is None:
            return None
        found = self.body.get("state", self.body.get("status"))
        if not isinstance(found, str) or not found:
            return None
        return ENDED.get(found.lower(), found.lower())

    @property
    def has_it(self) -> bool:
        """Whether the agent has the task: by a known state, or any state with a task id."""
        known = self.state in ACTIVE or self.state in ENDED
        return known or (self.state is not None and self.task_id is not None)

    @property
    def task_id(self) -> str | None:
        """The id of the task at the agent, if it can be used in a path."""
        found = self.text("task_id")
        return None if found in (".", "..") else found

    def text(self, name: str) -> str | None:
        """Return a name or id in the response as text that can be stored."""
        found = self.body.get(name) if self.body is not None else None
        if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
            return None
        text = clean_text(str(found))
        return text if len(text) <= MAX_ID else None

    def error_message(self) -> str | None:
        """Return the error message in the response, if any."""
        found = (self.body or {}).get("error") or (self.body or {}).get("detail")
        if isinstance(found, Mapping):
            found = found.get("message") or found
        return clean_text(str(found), limit=1500) if found else None


@dataclass(frozen=True)
class Health:
    """Whether an agent is idle, the state that it reported, and the error if it did not."""

    idle: bool = False
    said: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> "Health":
        """Read the state; without one, `idle: true` counts, or else the status."""
        state = reply.text("state")
        said = state or reply.text("status")
        idle = state is None and reply.body is not None and reply.body.get("idle") is True
        return cls(idle=idle or (said or "").lower() == "idle", said=said)


class AgentClient:
    """Requests to one agent; the address is checked for each of them."""

    def __init__(
        self, transport: Any, policy: OutboundPolicy, url: str, allow_private: bool
    ) -> None:
        self._transport = transport
        self._policy = policy
        self._url = url.rstrip("/")
        self._allowed = allow_private

    async def health(self) -> Health:
        """Check whether the agent is idle."""
        reply = await self._ask("GET", "/status", within_s=STATUS_S)
        if reply.status != 200:
            return Health(error=reply.error)
        if reply.body is None:
            return Health(error=f"{reply.error} without a JSON object")
        return Health.of(reply)

    async def submit(self, dispatch: Dispatch) -> Reply:
        """Submit a task; a repeated submission has the same idempotency key."""
        spec = dispatch.spec if isinstance(dispatch.spec, dict) else {}
        fields = {name: spec[name] for name in FIELDS if spec.get(name) is not None}
        return await self._ask(
            "POST",
            "/task",
            within_s=self._policy.timeout_s,
            headers={"content-type": "application/json", "idempotency-key": dispatch.key},
            body=json.dumps({**fields, "queue_id": dispatch.queue_id}).encode(),
        )

    async def look(self, task_id: str) -> Reply:
        """Get the state of a task, by the id of the agent or by its queue id."""
        return await self._ask(
            "GET", f"/task/{quote(task_id, safe='')}", within_s=LOOK_S, max_bytes=MAX_RESULT_BYTES
        )

    async def cancel(self, task_id: str) -> Reply:
        return await self._ask("POST", f"/task/{quote(task_id, safe='')}/cancel", within_s=CANCEL_S)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        within_s: float,
        max_bytes: int = MAX_READ_BYTES,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        """Send one request and return a reply within the timeout, whatever the agent does."""
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
                    raw = await read_prefix(response, max_bytes)
                finally:
                    with anyio.move_on_after(1, shield=True):
                        await response.aclose()
        except (
            *(AddressRefused, socket.gaierror, httpx2.InvalidURL),
            *(httpx2.ConnectError, httpx2.ConnectTimeout, UnicodeError),
        ) as problem:
            return Reply(None, _describe(problem, timeout_s), sent=False)
        except (httpx2.HTTPError, OSError, ValueError) as problem:
            # For an error response the status is enough; a success is useless without its body.
            if status is None or 200 <= status < 300:
                return Reply(None, _describe(problem, timeout_s))
        reply = Reply(
            status, f"answered {status}", body=_object(raw), too_large=len(raw) >= max_bytes
        )
        message = reply.error_message() if not 200 <= status < 300 else None
        return dataclasses.replace(
            reply, error=f"{reply.error}: {message}" if message else reply.error
        )


def _object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _describe(problem: BaseException, timeout_s: float) -> str:
    import httpx2

    if isinstance(problem, (TimeoutError, httpx2.TimeoutException)):
        return f"no response within {timeout_s:g} s"
    text = str(problem).strip() or type(problem).__name__
    return text if isinstance(problem, AddressRefused) else f"{type(problem).__name__}: {text}"
