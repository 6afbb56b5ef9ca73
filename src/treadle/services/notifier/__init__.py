"""The notifier: sends events to webhooks and Redis streams, to each endpoint in order.

An endpoint is leased, read from, sent to one event at a time, and moved on after each answer. No
transaction is open while we wait for the other side. Who is slow or down holds up nobody else.
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
# One endpoint gives its turn to the next after this long.
TURN_S = 30.0
# Grace for messages under way when it is told to end.
DRAIN_S = 15.0


class Sender(Protocol):
    """A way to one endpoint."""

    async def send(self, message_id: str, kind: str, document: str) -> Answer: ...


@asynccontextmanager
async def sender_for(target: WebhookTarget, policy: OutboundPolicy) -> AsyncIterator[Sender]:
    """The way to an endpoint, by its format."""
    if target.format == "redis":
        async with redis_sender(target, policy) as stream:
            yield stream
    else:
        async with http_sender(target, policy) as http:
            yield http


def message_id(target: WebhookTarget, event: int | str) -> str:
    """The same for every try of an event at an endpoint, and for nothing else."""
    return f"msg_{target.id.hex}_{event}"


class Lease:
    """The right to send to an endpoint, for as long as this process can be sure of it."""

    def __init__(self, token: UUID, asked_at: float) -> None:
        self.token = token
        self.renew(asked_at)

    def renew(self, asked_at: float) -> None:
        self._until = asked_at + LEASE_S

    def lasts(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self._until


class Notifier(Service):
    """Delivers events to endpoints; many endpoints at once, each in order."""

    name = "notifier"
    channel = "treadle_events"
    grace_s = DRAIN_S + 2

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._policy = OutboundPolicy()
        self._slots = 1
        self._busy: set[UUID] = set()
        self._group: TaskGroup | None = None

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self._policy = OutboundPolicy.for_webhooks(settings)
        self._slots = settings.webhook_slots

    async def run(self) -> None:
        """Deliver until stopped; messages under way are waited for a while."""
        async with anyio.create_task_group() as self._group:
            await super().run()
            self._group.cancel_scope.deadline = anyio.current_time() + self.left_of(DRAIN_S)

    async def tick(self) -> int:
        free = self._slots - len(self._busy)
        if free <= 0:
            return 0
        if self._listen_url is not None:
            await self._db.webhooks.listen()
        token, asked_at = uuid4(), time.monotonic()
        taken = await self._db.webhooks.take(token, free, LEASE_S)
        for target in taken:
            self._busy.add(target.id)
            lease = Lease(token, asked_at)
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
        """One turn of an endpoint; whatever goes wrong stays with it."""
        try:
            await self._deliver(target, lease)
            # With the deadline and the repetition of every call: a lease that is not given back
            # keeps everybody from this endpoint until it runs out.
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
            # The database is away: the lease runs out, and the event is sent again.
            log.warning("notifier.waiting", webhook=target.name, error=str(error))
        except Exception:
            log.exception("webhook.broken", webhook=target.name)

    async def _send_all(self, target: WebhookTarget, lease: Lease) -> int:
        sent, until = 0, time.monotonic() + TURN_S
        try:
            async with sender_for(target, self._policy) as sender:
                while self._has_time(until):
                    asked_at = time.monotonic()
                    batch = await self._db.webhooks.read(target.name, lease.token, EVENTS)
                    lease.renew(asked_at)
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
        """Send one event and record what came of it; whether to go on with the next."""
        # A process that was stopped for long may have been replaced: then it sends nothing.
        if not lease.lasts(3 * self._policy.timeout_s / 2):
            log.warning("webhook.lease_lost", webhook=target.name)
            return False
        try:
            answer = await sender.send(message_id(target, event.id), event.kind, event.document)
        except Exception as error:
            log.exception("webhook.broken", webhook=target.name, event_id=event.id)
            answer = Answer(None, f"cannot be sent: {type(error).__name__}", 0)
        if answer.error is not None:
            await self._fail(target, lease, event, answer)
            return False
        asked_at = time.monotonic()
        go_on = await self._db.webhooks.ack(
            target.name, lease.token, event, status=answer.status, ms=answer.ms
        )
        lease.renew(asked_at)
        return go_on

    async def _release(self, target: WebhookTarget, lease: Lease) -> None:
        try:
            await self._db.webhooks.release(target.name, lease.token)
        except TreadleError as error:
            log.warning("notifier.waiting", webhook=target.name, error=str(error))

    async def _fail(
        self, target: WebhookTarget, lease: Lease, event: WebhookEvent | None, answer: Answer
    ) -> None:
        now = await self._db.webhooks.fail(
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
            status=now,
        )


def require_sender() -> None:
    """Refuse to run where nothing could ever be sent."""
    if not any(find_spec(name) for name in ("httpx2", "redis")):
        raise MissingExtra(
            "the notifier needs httpx2, or redis for Redis streams",
            hint="Install it: pip install 'treadle[webhooks]'",
        )
