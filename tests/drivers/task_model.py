"""What the SQL functions should do with one task after another, in plain Python.

Every task of the model has the policy {"strategy": "fixed", "initial_delay_s": 100} or
{"strategy": "immediate"}, without jitter and without poison pills. Time is the model's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

LIVE = ("claimed", "running")
ENDED = ("completed", "dead_lettered", "cancelled")
DELAY_S, CLAIM_TTL_S, LEASE_S = 100, 60, 90


@dataclass
class Task:
    """One task as it should be."""

    id: UUID
    key: str | None
    immediate: bool
    max_attempts: int
    status: str
    due: int | None = None
    attempt: int = 0
    earlier_attempts: int = 0
    agent: str | None = None
    token: UUID | None = None
    last_token: UUID | None = None
    lease: int | None = None
    output: object = None
    history: list[str] = field(default_factory=list)

    def claim(self, agent: str, token: UUID, *, start: bool, now: int) -> None:
        """An agent claims the task."""
        self.status = "running" if start else "claimed"
        self.attempt += 1
        self.agent, self.token, self.last_token = agent, token, None
        self.lease = now + (LEASE_S if start else CLAIM_TTL_S)

    def start(self, token: UUID, now: int) -> str:
        """The result of start_tasks."""
        if token == self.token and self.status == "claimed":
            self.status, self.lease = "running", now + LEASE_S
        return self._holds(token)

    def heartbeat(self, token: UUID, now: int) -> str:
        """The result of heartbeat_tasks."""
        if token == self.token and self.status == "running":
            self.lease = now + LEASE_S
        return self._holds(token)

    def complete(self, token: UUID, output: object) -> str:
        """The result of complete_tasks."""
        late = token == self.last_token and self.status not in ENDED
        if token == self.token or late:
            self._end_claim("completed")
            self.output, self.last_token, self.due = output, token, None
            return "completed"
        return self._repeated(token, completing=True)

    def fail(self, token: UUID, now: int, reason: str = "handler") -> str:
        """The result of fail_tasks; the reaper ends a claim in the same way."""
        if token != self.token:
            return self._repeated(token, completing=False)
        self.history.append(reason)
        if self.attempt >= self.max_attempts:
            self._end_claim("dead_lettered")
        elif self.immediate:
            self._end_claim("ready")
        else:
            self._end_claim("retrying")
            self.due = now + DELAY_S
        return self.status

    def release(self, token: UUID) -> str:
        """The result of release_tasks."""
        if token != self.token:
            return self._repeated(token, completing=False)
        self._end_claim("ready")
        self.attempt -= 1
        return "released"

    def cancel(self) -> str:
        """The result of cancel_tasks."""
        if self.status in ENDED:
            return "already" if self.status == "cancelled" else "ended"
        if self.token is not None:
            self.history.append("cancelled")
            self._end_claim("cancelled")
        self.status, self.due = "cancelled", None
        return "cancelled"

    def reap(self, now: int) -> str | None:
        """The reason why the reaper ends the claim, if it does."""
        if self.lease is None or self.token is None or self.lease >= now:
            return None
        reason = "claim_expired" if self.status == "claimed" else "heartbeat_timeout"
        self.fail(self.token, now, reason)
        return reason

    def promote(self, now: int) -> bool:
        """Whether the promoter makes it ready."""
        if self.status not in ("pending", "retrying") or self.due is None or self.due > now:
            return False
        self.status, self.due = "ready", None
        return True

    def unhold(self, now: int) -> None:
        """Release the task if it is held."""
        if self.status == "created":
            waits = self.due is not None and self.due > now
            self.status, self.due = ("pending", self.due) if waits else ("ready", None)

    def may_retry(self) -> bool:
        """Whether retry_task accepts the task."""
        return self.status in ("dead_lettered", "cancelled", "retrying")

    def retry(self) -> None:
        """An operator retries the task: it gets as many attempts again."""
        self.status, self.due, self.last_token = "ready", None, None
        self.max_attempts += self.attempt - self.earlier_attempts
        self.earlier_attempts = self.attempt

    def holds_key(self) -> bool:
        """Whether its key is in use."""
        return self.status not in ("dead_lettered", "cancelled")

    def _holds(self, token: UUID) -> str:
        if token == self.token:
            return "ok"
        return "cancelled" if self._was_cancelled(token) else "lost"

    def _was_cancelled(self, token: UUID) -> bool:
        return self.status == "cancelled" and token == self.last_token

    def _repeated(self, token: UUID, *, completing: bool) -> str:
        same = token == self.last_token and (self.status == "completed") == completing
        return "already" if same else "stale"

    def _end_claim(self, status: str) -> None:
        if self.token is not None:
            self.last_token = self.token
        self.status, self.agent, self.token, self.lease = status, None, None, None
