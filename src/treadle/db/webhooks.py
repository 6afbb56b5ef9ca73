"""Webhooks and their deliveries; reached as `db.webhooks`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownWebhook
from treadle.json import encode

_TARGET = "name, id, url, format, stream, max_length, secrets, allow_private"


@dataclass(frozen=True)
class WebhookTarget:
    """The endpoint of a webhook; secrets are not in its repr."""

    name: str
    id: UUID
    url: str = field(repr=False)
    format: str
    stream: str | None
    max_length: int
    secrets: list[str] = field(repr=False)
    allow_private: bool


@dataclass(frozen=True)
class WebhookEvent:
    """An event to send, with its position in the order."""

    xid: int
    id: int
    kind: str
    document: str


class Webhooks:
    """Define webhooks, deliver events to them and read deliveries."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> tuple[str | None, bool]:
        """Create or change a webhook; return a new secret and whether the webhook is new."""
        rows = await self._calls.call(
            "select secret, created from treadle.define_webhook(%b, %b, %b)",
            name,
            RawJson(encode(dict(settings), name="settings")),
            actor,
        )
        secret, created = rows[0]
        return secret, created

    async def pause(self, name: str, reason: str | None = None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_webhook(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.resume_webhook(%b, %b)", name, actor)

    async def rotate(self, name: str, keep_s: float, actor: str | None = None) -> str:
        rows = await self._calls.call_once(
            "select treadle.rotate_webhook(%b, %b::float8, %b)", name, keep_s, actor
        )
        return str(rows[0][0])

    async def remove(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_webhook(%b, %b)", name, actor)

    async def test(self, name: str) -> tuple[WebhookTarget, str]:
        """Return the target of a webhook and a test message for it."""
        rows = await self._calls.call_once(
            f"select (target).{_TARGET.replace(', ', ', (target).')}, document"
            " from treadle.test_webhook(%b)",
            name,
        )
        return WebhookTarget(*rows[0][:-1]), rows[0][-1]

    async def listen(self) -> None:
        await self._calls.call("select treadle.listen_webhooks()")

    async def take(self, token: UUID, limit: int, lease_s: float) -> list[WebhookTarget]:
        rows = await self._calls.call(
            f"select {_TARGET} from treadle.take_webhooks(%b, %b::integer, %b::float8)",
            token,
            limit,
            lease_s,
        )
        return [WebhookTarget(*row) for row in rows]

    async def read(self, name: str, token: UUID, limit: int) -> list[WebhookEvent]:
        rows = await self._calls.call(
            """
            select xid::text, id, kind, document
            from treadle.read_webhook(%b, %b, %b::integer)
            """,
            name,
            token,
            limit,
        )
        return [WebhookEvent(int(row[0]), *row[1:]) for row in rows]

    async def ack(
        self, name: str, token: UUID, event: WebhookEvent, *, status: int | None, ms: int
    ) -> bool:
        """Record a delivery; return whether the lease is held and the webhook not paused."""
        rows = await self._calls.call(
            "select treadle.ack_webhook(%b, %b, %b::text::xid8, %b::bigint, %b, %b::integer)",
            name,
            token,
            str(event.xid),
            event.id,
            status,
            ms,
        )
        return bool(rows[0][0])

    async def fail(
        self,
        name: str,
        token: UUID,
        event_id: int,
        *,
        status: int | None,
        error: str,
        after_s: float | None,
        ms: int,
    ) -> str | None:
        """Record a failed delivery; return the status of the webhook, None if the lease is lost."""
        rows = await self._calls.call(
            """
            select treadle.fail_webhook(
              %b, %b, %b::bigint, %b::integer, %b, %b::float8, %b::integer
            )
            """,
            name,
            token,
            event_id,
            status,
            error,
            after_s,
            ms,
        )
        found: str | None = rows[0][0]
        return found

    async def release(self, name: str, token: UUID) -> None:
        await self._calls.call("select treadle.release_webhook(%b, %b)", name, token)

    async def next_due_in(self) -> float | None:
        return await self._calls.seconds_until("treadle.next_webhook_at()")

    async def get(self, name: str) -> dict[str, Any]:
        found = await self._calls.rows(
            "select * from treadle.webhook_status where name = %(name)s", {"name": name}
        )
        if not found:
            raise UnknownWebhook(
                f"there is no webhook {name!r}", hint="List them: treadle webhooks", webhook=name
            )
        return found[0]

    async def deliveries(self, name: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """List the latest delivery attempts, newest first."""
        return await self._calls.rows(
            """
            select * from treadle.webhook_delivery_log
            where %(name)s::text is null or webhook = %(name)s
            order by id desc
            limit %(limit)s
            """,
            {"name": name, "limit": limit},
        )

    async def page(self, *, after: str | None, limit: int) -> list[Record]:
        """Webhooks by name."""
        return await self._calls.page("webhook_status", key="name", after=after, limit=limit)

    async def delivery_page(self, name: str, *, after: int | None, limit: int) -> list[Record]:
        """The last attempts to deliver to a webhook, the newest first."""
        return await self._calls.page(
            "webhook_delivery_log",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={"webhook = {}": name},
        )

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows("select * from treadle.webhook_status order by name")
