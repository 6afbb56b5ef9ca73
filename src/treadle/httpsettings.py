"""What the HTTP interfaces and the processes behind them can be told; part of the settings."""

import re
from typing import Annotated

from pydantic import AliasChoices, Field, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode

Seconds = Annotated[float, Field(gt=0, le=86_400)]


# A variable that stands in for that of a setting when it is not given.
STAND_INS = {
    "database_url": "DATABASE_URL",
    "port": "PORT",
    "queue_max_size": "AG_QUEUE_MAX_SIZE",
    "queue_max_attempts": "AG_QUEUE_MAX_ATTEMPTS",
    "queue_dispatch_timeout_s": "AG_QUEUE_DISPATCH_TIMEOUT",
}
SPANS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|h)"
DISPATCH_TIMEOUT_S = 30.0
MOST_DISPATCH_TIMEOUT_S = 600.0


def names(name: str) -> AliasChoices:
    """The variable of a setting, what stands in for it, and its name in a file."""
    return AliasChoices(f"TREADLE_{name.upper()}", STAND_INS[name], name)


class HttpSettings(BaseSettings):
    """The server, the dispatcher, the work API and the harness."""

    host: str = Field("127.0.0.1", description="Address that the server listens on.")
    port: int = Field(
        8420,
        ge=0,
        le=65535,
        validation_alias=names("port"),
        description="Port that the server listens on.",
    )
    server_pool_size: int = Field(
        16, ge=2, le=100, description="Most pooled connections of the server."
    )
    server_statement_timeout_s: float = Field(
        30.0,
        ge=0,
        le=3600,
        description="Longest run of a statement of the server; 0 is no limit.",
    )
    queue_max_size: int = Field(
        50,
        ge=1,
        le=100_000,
        validation_alias=names("queue_max_size"),
        description="Most prompts that wait in queue push; one more is refused.",
    )
    queue_max_attempts: int = Field(
        3,
        ge=1,
        le=1000,
        validation_alias=names("queue_max_attempts"),
        description="Times that a prompt is sent before it has failed.",
    )
    queue_dispatch_timeout_s: float = Field(
        DISPATCH_TIMEOUT_S,
        ge=0,
        validation_alias=names("queue_dispatch_timeout_s"),
        description="Longest wait for an agent to take a prompt, up to 600; or 500ms, 1m30s.",
    )
    dispatch_every_s: Seconds = Field(
        1.0, description="Longest time between two looks of the dispatcher for idle agents."
    )
    track_every_s: Seconds = Field(
        5.0, description="Time between two questions to an agent about what it works on."
    )
    dispatch_lease_s: float = Field(
        15.0, ge=0.1, le=3600, description="Another dispatcher takes over after this silence."
    )
    dispatch_unsure_s: Seconds | None = Field(
        None, description="Time to ask whether a prompt arrived; else twice the dispatch timeout."
    )
    dispatch_silent_s: Seconds = Field(
        600.0, description="How long an agent that works may be out of reach."
    )
    dispatch_private: bool = Field(
        True, description="Connect to private addresses, for agents with allow_private."
    )
    dispatch_http: bool = Field(
        False, description="Connect to agents at public addresses without encryption too."
    )
    dispatch_ports: Annotated[list[int], NoDecode] = Field(
        [], description="More ports of agents at public addresses, comma separated."
    )
    work_stale_s: Seconds = Field(
        1800.0, description="Work without news for so long is blocked; what the server says counts."
    )
    harness_claim_timeout_s: Seconds = Field(
        300.0,
        ge=1,
        description="A claim of an agent of the harness lasts so long without a heartbeat.",
    )
    harness_drain_s: Seconds = Field(
        10.0, description="Time between two looks of the harness for results."
    )
    harness_requeue_s: Seconds = Field(
        60.0, description="Time between two looks of the harness for claims that ran out."
    )
    harness_slots: int = Field(
        4, ge=1, le=1000, description="Callbacks that a harness runs at once."
    )
    harness_tries: int = Field(
        3, ge=1, le=100, description="How often a callback that fails gets the same decision."
    )
    harness_nudge_timeout_s: float = Field(
        5.0, gt=0, le=30, description="Longest wait for the answer of an agent to a nudge."
    )
    harness_secrets: bool = Field(
        False, description="Store payloads and decisions that look as if a credential were in them."
    )
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        [], description="More names that a server without tokens answers to, comma separated."
    )
    max_body_bytes: int = Field(
        2 * 1024**2, ge=1024, le=1024**3, description="Largest body that the server takes."
    )
    body_timeout_s: Seconds = Field(15.0, description="Longest wait for the body of a request.")
    header_timeout_s: Seconds = Field(
        10.0, description="Longest wait for the headers of a request."
    )
    max_connections: int = Field(
        2000, ge=16, le=100_000, description="Most connections of clients to the server."
    )
    max_requests: int = Field(
        1000, ge=1, le=100_000, description="Most requests that the server works on at once."
    )
    rate_per_s: float = Field(
        0.0, ge=0, le=1e6, description="Requests a second of one token or address; 0 is no limit."
    )
    sse_max: int = Field(
        200, ge=1, le=10_000, description="Most streams of events that the server has at once."
    )

    @field_validator("queue_dispatch_timeout_s", mode="before")
    @classmethod
    def _span(cls, value: object) -> object:
        """Seconds, or numbers with their units, one after the other."""
        if not isinstance(value, str):
            return value
        if re.fullmatch(f"(?:{PART})+", value):
            return sum(float(number) * SPANS[unit] for number, unit in re.findall(PART, value))
        try:
            return float(value)
        except ValueError:
            raise PydanticCustomError("span", "seconds, or 500ms, 30s, 1m30s") from None

    @field_validator("queue_dispatch_timeout_s")
    @classmethod
    def _bounded(cls, value: float) -> float:
        """Only a dispatcher waits: a variable of all processes stops none of them by its size."""
        return min(value, MOST_DISPATCH_TIMEOUT_S) or DISPATCH_TIMEOUT_S
