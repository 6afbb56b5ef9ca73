"""The notifier: sends events to webhooks and Redis streams, in order for each endpoint.

The notifier leases an endpoint, reads its next events, sends one at a time and records each
response. No transaction is open while it waits for a response. A slow endpoint does not delay
others.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any, Protocol
from uuid import UUID, uuid4

import anyio
from anyio.abc import TaskGroup

from treadle.db.webhooks import WebhookEvent, WebhookTarget
from treadle.errors import MissingExtra, TreadleError
from treadle.services.notifier.http import Answer, http_sender
from treadle.services.notifier.redis import redis_sender
from treadle.services.outbound import OutboundPolicy
from treadle.services.service import Service, log
from treadle.settings import Settings

LEASE_S = 60.0
EVENTS = 100
# The maximum time for one endpoint before another one gets its turn.
TURN_S = 30.0
# Time for messages in progress to finish after a stop.
DRAIN_S = 15.0


class Sender(Protocol):
    """Sends messages to one endpoint."""

    async def send(self, message_id: str, kind: str, document: str) -> Answer: ...


@asynccontextmanager
async def sender_for(target: WebhookTarget, policy: OutboundPolicy) -> AsyncIterator[Sender]:
    """Open a sender for the format of an endpoint."""
    if target.format == "redis":
        async with redis_sender(target, policy) as stream:
            yield stream
    else:
        async with http_sender(target, policy) as http:
            yield http


def message_id(target: WebhookTarget, event: int | str) -> str:
    """Return the id of an event at an endpoint; it is the same for every delivery attempt."""
    return f"msg_{target.id.hex}_{event}"


class Lease:
    """The lease of an endpoint, measured from before the call that took or renewed it."""

    def __init__(self, token: UUID, sent_at: float) -> None:
        self.token = token
        self.renew(sent_at)

    def renew(self, sent_at: float) -> None:
        self._until = sent_at + LEASE_S

    def lasts(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self._until


class Notifier(Service):
    """Delivers events to several endpoints concurrently, and to each in order."""

    name = "notifier"
    channel = "treadle_events"
    grace_s = DRAIN_S + 2

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._policy = OutboundPolicy()
        self._slots = 1
        self._busy: set[UUID] = set()
        self._group: TaskGroup | None = None

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self._policy = OutboundPolicy.for_webhooks(settings)
        self._slots = settings.webhook_slots

    async def run(self) -> None:
        """Deliver until stopped, then wait a while for messages in progress."""
        async with anyio.create_task_group() as self._group:
            await super().run()
            self._group.cancel_scope.deadline = anyio.current_time() + self.left_of(DRAIN_S)

    async def tick(self) -> int:
        free = self._slots - len(self._busy)
        if free <= 0:
            return 0
        if self._listen_url is not None:
            await self._db.webhooks.listen()
        token, sent_at = uuid4(), time.monotonic()
        taken = await self._db.webhooks.take(token, free, LEASE_S)
        for target in taken:
            self._busy.add(target.id)
            lease = Lease(token, sent_at)
            if self._group is None:
                await self._turn(target, lease)
            else:
                self._group.start_soon(self._turn, target, lease)
        return len(taken)

    async def next_in(self) -> float | None:
        if len(self._busy) >= self._slots:
            return None
        return await self._db.webhooks.next_due_in()

    async def _turn(self, target: WebhookTarget, lease: Lease) -> None:
        """Deliver to one endpoint; an error in it does not affect the others."""
        try:
            await self._deliver(target, lease)
            # With the usual timeout and retries: until a lease is released or expires, no notifier
            # sends to this endpoint.
            await self._release(target, lease)
        except anyio.get_cancelled_exc_class():
            # The process stops.
            with anyio.move_on_after(2, shield=True):
                await self._release(target, lease)
            raise
        finally:
            self._busy.discard(target.id)
            self._wake.set()

    async def _deliver(self, target: WebhookTarget, lease: Lease) -> None:
        try:
            sent = await self._send_all(target, lease)
            self.moved += sent
            if sent:
                log.info("events.delivered", webhook=target.name, events=sent)
        except TreadleError as error:
            # The database is unavailable: the lease expires, and the event is sent again.
            log.warning("notifier.call_failed", webhook=target.name, error=str(error))
        except Exception:
            log.exception("webhook.delivery_crashed", webhook=target.name)

    async def _send_all(self, target: WebhookTarget, lease: Lease) -> int:
        sent, until = 0, time.monotonic() + TURN_S
        try:
            async with sender_for(target, self._policy) as sender:
                while self._has_time(until):
                    sent_at = time.monotonic()
                    batch = await self._db.webhooks.read(target.name, lease.token, EVENTS)
                    lease.renew(sent_at)
                    for event in batch:
                        if not self._has_time(until):
                            break
                        if not await self._send(sender, target, event, lease):
                            return sent
                        sent += 1
                    if not batch:
                        break
        except MissingExtra as error:
            await self._fail(target, lease, None, Answer(None, f"{error}: {error.hint}", 0))
        return sent

    def _has_time(self, until: float) -> bool:
        return not self._stopping and time.monotonic() < until

    async def _send(
        self, sender: Sender, target: WebhookTarget, event: WebhookEvent, lease: Lease
    ) -> bool:
        """Send one event and record the response; return whether to continue with the next."""
        # If this process was suspended, another notifier may have the lease: send nothing.
        if not lease.lasts(3 * self._policy.timeout_s / 2):
            log.warning("webhook.lease_lost", webhook=target.name)
            return False
        try:
            answer = await sender.send(message_id(target, event.id), event.kind, event.document)
        except Exception as error:
            log.exception("webhook.delivery_crashed", webhook=target.name, event_id=event.id)
            answer = Answer(None, f"cannot be sent: {type(error).__name__}", 0)
        if answer.error is not None:
            await self._fail(target, lease, event, answer)
            return False
        sent_at = time.monotonic()
        go_on = await self._db.webhooks.ack(
            target.name, lease.token, event, status=answer.status, ms=answer.ms
        )
        lease.renew(sent_at)
        return go_on

    async def _release(self, target: WebhookTarget, lease: Lease) -> None:
        try:
            await self._db.webhooks.release(target.name, lease.token)
        except TreadleError as error:
            log.warning("notifier.release_failed", webhook=target.name, error=str(error))

    async def _fail(
        self, target: WebhookTarget, lease: Lease, event: WebhookEvent | None, answer: Answer
    ) -> None:
        status = await self._db.webhooks.fail(
            target.name,
            lease.token,
            event.id if event else 0,
            status=answer.status,
            error=answer.error or "",
            after_s=answer.after_s,
            ms=answer.ms,
        )
        log.warning(
            "webhook.failed",
            webhook=target.name,
            event_id=event.id if event else None,
            error=answer.error,
            status=status,
        )


def require_sender() -> None:
    """Raise MissingExtra if neither httpx2 nor redis is installed."""
    if not any(find_spec(name) for name in ("httpx2", "redis")):
        raise MissingExtra(
            "the notifier needs httpx2, or redis for Redis streams",
            hint="Install it: pip install 'treadle[webhooks]'",
        )
