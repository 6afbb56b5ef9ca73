"""Webhooks as they are sent and shown."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Name, Object, Text


class WebhookSettings(Body):
    """Where events are sent, and which; what is not named stays as it is."""

    url: Text | None = Field(None, min_length=1, max_length=2000)
    format: Literal["standard", "slack", "redis"] | None = None
    kinds: list[Name] | None = Field(
        None, min_length=1, max_length=100, description="With * for any ending; else all."
    )
    filter: Object | None = Field(None, description="What an event must contain, as it is sent.")
    stream: Text | None = Field(None, min_length=1, max_length=500)
    max_length: int | None = Field(None, ge=1, le=100_000_000)
    allow_private: bool | None = None
    secret: Text | None = Field(None, min_length=38, max_length=94)
    from_start: bool | None = Field(None, description="Begin with the oldest event kept.")


class Rotate(Body):
    """For how long the former secret signs too."""

    keep_s: float = Field(86_400, ge=0, le=31_536_000)


class Webhook(BaseModel):
    """A webhook with everything but its secrets and the path of its address."""

    name: str
    format: str
    address: str
    stream: str | None
    kinds: list[str]
    filter: dict[str, Any]
    allow_private: bool
    status: str
    reason: str | None
    failures: int
    failed_since_at: datetime | None
    next_try_at: datetime | None
    last_status: int | None
    last_error: str | None
    last_try_at: datetime | None
    delivered: int
    delivered_at: datetime | None
    unread: int
    delivering: bool | None
    rotated_until: datetime | None
    created_at: datetime
    created_by: str


class DefinedWebhook(Webhook):
    """A webhook; its secret where it is new, this once."""

    secret: str | None


class Secret(BaseModel):
    """A new secret, shown this once."""

    name: str
    secret: str


class Delivery(BaseModel):
    """A try to deliver an event."""

    id: int
    webhook: str
    at: datetime
    event_id: int
    kind: str | None
    status: int | None
    error: str | None
    ms: int


class Tested(BaseModel):
    """What the other side said to a test message; without an error it arrived."""

    status: int | None
    error: str | None
    ms: int


class Received(BaseModel):
    """The event that a call from outside became."""

    event_id: int
