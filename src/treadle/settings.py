"""The settings, their sources and their defaults.

This is the only module that reads the environment. The first value found is used, in this order:
the command line, `TREADLE_*`, `treadle.toml` in the working directory, the default. If the
`TREADLE_*` variable is not set, `DATABASE_URL`, `PORT` and `AG_QUEUE_*` are used instead.
"""

import os
import re
import socket
import tomllib
import warnings
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import AliasChoices, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from treadle.errors import ConfigurationError

log = structlog.get_logger(__name__)
_warned: set[str] = set()
Seconds = Annotated[float, Field(gt=0, le=86_400)]
# The defaults of a lease; SQL has the same for agents that register without Python.
HEARTBEAT_S = 30.0
CLAIM_TTL_S = 60.0


# The variable to use if that of a setting is not set.
FALLBACK_VARIABLES = {
    "database_url": "DATABASE_URL",
    "port": "PORT",
    "queue_max_size": "AG_QUEUE_MAX_SIZE",
    "queue_max_attempts": "AG_QUEUE_MAX_ATTEMPTS",
    "queue_dispatch_timeout_s": "AG_QUEUE_DISPATCH_TIMEOUT",
}
# Variables of tests and benchmarks, and of the command line itself.
OTHER_VARIABLES = ("TREADLE_TEST_", "TREADLE_BENCH_", "TREADLE_DEBUG")
UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
DURATION_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|h)"
DISPATCH_TIMEOUT_S = 30.0
MAX_DISPATCH_TIMEOUT_S = 600.0


def names(name: str) -> AliasChoices:
    """Return the variable of a setting, its fallback variable, and its name in a file."""
    return AliasChoices(f"TREADLE_{name.upper()}", FALLBACK_VARIABLES[name], name)


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
        16, ge=2, le=100, description="Maximum number of pooled connections of the server."
    )
    server_statement_timeout_s: float = Field(
        30.0,
        ge=0,
        le=3600,
        description="Timeout of a statement of the server; 0 means no limit.",
    )
    queue_max_size: int = Field(
        50,
        ge=1,
        le=100_000,
        validation_alias=names("queue_max_size"),
        description="Maximum number of waiting prompts in queue push; more are rejected.",
    )
    queue_max_attempts: int = Field(
        3,
        ge=1,
        le=1000,
        validation_alias=names("queue_max_attempts"),
        description="Number of times that a prompt is sent before it fails.",
    )
    queue_dispatch_timeout_s: float = Field(
        DISPATCH_TIMEOUT_S,
        ge=0,
        validation_alias=names("queue_dispatch_timeout_s"),
        description="Timeout for an agent to accept a prompt, up to 600; or 500ms, 1m30s.",
    )
    dispatch_every_s: Seconds = Field(
        1.0, description="Maximum time between two polls of the dispatcher for idle agents."
    )
    track_every_s: Seconds = Field(
        5.0, description="Time between two status requests to an agent about its task."
    )
    dispatch_lease_s: float = Field(
        15.0, ge=0.1, le=3600, description="Lease of a dispatcher; then another one takes over."
    )
    dispatch_unsure_s: Seconds | None = Field(
        None,
        description="Timeout for finding out whether a prompt arrived; default: 2 * the timeout.",
    )
    dispatch_silent_s: Seconds = Field(
        600.0, description="Time that an agent with a task may be unreachable."
    )
    dispatch_private: bool = Field(
        True, description="Allow private addresses for agents with allow_private."
    )
    dispatch_http: bool = Field(False, description="Allow public agents without encryption.")
    dispatch_ports: Annotated[list[int], NoDecode] = Field(
        [], description="Additional ports of public agents, comma separated."
    )
    work_stale_s: Seconds = Field(
        1800.0,
        description="Time without an update after which a work item is blocked; set on the server.",
    )
    harness_claim_timeout_s: Seconds = Field(
        300.0,
        ge=1,
        description="Time that a claim of the harness lasts without a heartbeat.",
    )
    harness_drain_s: Seconds = Field(
        10.0, description="Time between two polls of the harness for results."
    )
    harness_requeue_s: Seconds = Field(
        60.0, description="Time between two polls of the harness for expired claims."
    )
    harness_slots: int = Field(
        4, ge=1, le=1000, description="Number of callbacks that a harness runs at once."
    )
    harness_tries: int = Field(
        3,
        ge=1,
        le=100,
        description="Number of times that a failing callback is called for one decision.",
    )
    harness_nudge_timeout_s: float = Field(
        5.0, gt=0, le=30, description="Timeout for the response of an agent to a nudge."
    )
    harness_secrets: bool = Field(
        False, description="Store payloads and decisions that seem to contain a credential."
    )
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        [],
        description="Additional host names that a server without tokens accepts, comma separated.",
    )
    max_body_bytes: int = Field(
        2 * 1024**2, ge=1024, le=1024**3, description="Maximum size of a request body, in bytes."
    )
    body_timeout_s: Seconds = Field(
        15.0, description="Timeout for receiving the body of a request."
    )
    header_timeout_s: Seconds = Field(
        10.0, description="Timeout for receiving the headers of a request."
    )
    max_connections: int = Field(
        2000, ge=16, le=100_000, description="Maximum number of client connections of the server."
    )
    max_requests: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Maximum number of requests that the server handles at once.",
    )
    rate_per_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="Requests per second of one token or address; 0 means no limit.",
    )
    sse_max: int = Field(
        200, ge=1, le=10_000, description="Maximum number of event streams of the server."
    )

    @field_validator("queue_dispatch_timeout_s", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        """Parse seconds, or numbers with units such as 1m30s."""
        if not isinstance(value, str):
            return value
        if re.fullmatch(f"(?:{DURATION_PART})+", value):
            parts = re.findall(DURATION_PART, value)
            return sum(float(number) * UNITS_S[unit] for number, unit in parts)
        try:
            return float(value)
        except ValueError:
            raise PydanticCustomError("duration", "pass seconds, or 500ms, 30s, 1m30s") from None

    @field_validator("queue_dispatch_timeout_s")
    @classmethod
    def _bounded(cls, value: float) -> float:
        """Limit the value instead of rejecting it: other processes read the variable as well."""
        return min(value, MAX_DISPATCH_TIMEOUT_S) or DISPATCH_TIMEOUT_S


class CoreSettings(BaseSettings):
    """The database, the worker and the services."""

    database_url: str | None = Field(
        None,
        validation_alias=names("database_url"),
        description="Database URL of PostgreSQL 15 or newer.",
    )
    listen_url: str | None = Field(
        None, description="Direct connection for LISTEN when database_url goes through a pooler."
    )
    embedded: bool = Field(False, description="Use the embedded PostgreSQL when no URL is given.")
    data_dir: Path | None = Field(None, description="Folder of the embedded PostgreSQL.")
    notify: bool = Field(True, description="LISTEN for new tasks; false means polling only.")
    queues: Annotated[list[str], NoDecode] = Field(
        ["default"], description="Queues that a worker serves, comma separated."
    )
    agent_id: str | None = Field(None, description="Name of the worker; generated when absent.")
    capabilities: Annotated[list[str], NoDecode] = Field(
        [], description="Capabilities of the worker, comma separated."
    )
    models: Annotated[list[str], NoDecode] = Field(
        [], description="Models that the worker can use, comma separated."
    )
    budget_usd: float | None = Field(
        None,
        ge=0,
        le=1e8,
        description="Budget of the worker in dollars, unless a person has set one; needs agent_id.",
    )
    slots: int = Field(
        10, ge=1, le=10_000, description="Number of handlers that a worker runs at once."
    )
    prefetch: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Maximum number of tasks to claim ahead; the worker adapts below it.",
    )
    poll_s: Seconds = Field(5.0, description="Maximum time between two polls of an idle worker.")
    heartbeat_s: Seconds = Field(
        HEARTBEAT_S, description="Time between two heartbeats; a lease lasts three heartbeats."
    )
    claim_ttl_s: Seconds = Field(
        CLAIM_TTL_S, description="Time within which a claimed task must start."
    )
    validator_timeout_s: Seconds = Field(120.0, description="Default timeout of a validator.")
    drain_s: float = Field(
        30.0, ge=0, le=86_400, description="Time that handlers have to finish after SIGTERM."
    )
    service_s: Seconds = Field(
        5.0, description="Maximum time between two passes of the reaper and the promoter."
    )
    prune_every_s: Seconds = Field(600.0, description="Time between two passes of the pruner.")
    prune_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Fraction of the time that the pruner works; it pauses for the rest.",
    )
    prune_batch: int = Field(
        1000, ge=1, le=10_000, description="Maximum number of tasks removed in one transaction."
    )
    artifacts_url: str | None = Field(
        None,
        description="Where artifacts are stored: file:///folder or s3://bucket/prefix; a folder "
        "of the user when absent.",
    )
    artifacts_endpoint: str | None = Field(
        None, description="URL of an S3-compatible store that is not AWS."
    )
    artifact_max_bytes: int = Field(
        1024**3, ge=1, description="Maximum size of one artifact, in bytes."
    )
    webhook_slots: int = Field(
        20, ge=1, le=1000, description="Number of endpoints that a notifier sends to at once."
    )
    webhook_timeout_s: float = Field(
        10.0, gt=0, le=30, description="Timeout for the response of a webhook."
    )
    webhook_private: bool = Field(
        False, description="Allow private addresses for webhooks with allow_private."
    )
    webhook_http: bool = Field(False, description="Allow public webhooks without encryption.")
    webhook_ports: Annotated[list[int], NoDecode] = Field(
        [], description="Additional ports of public webhooks, comma separated."
    )
    prepare: bool = Field(
        True, description="Use prepared statements; turn off behind a transaction pooler."
    )
    verify_code: bool = Field(
        True,
        description="Compare functions and views with this release before a superuser runs them.",
    )
    pool_size: int = Field(
        4,
        ge=2,
        le=100,
        description="Maximum number of pooled connections of a process for its own calls.",
    )
    transaction_connections: int = Field(
        20,
        ge=1,
        le=1000,
        description="Maximum number of connections for `ctx.transaction()`; never more than slots.",
    )
    connect_timeout_s: Seconds = Field(10.0, description="Timeout for opening a connection.")
    call_timeout_s: Seconds = Field(
        30.0,
        description="Timeout of a database call, which is then repeated on a new connection.",
    )
    handler_statement_timeout_s: Seconds = Field(
        600.0, description="Timeout of a statement of a handler in `ctx.transaction()`."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="Format of log output."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Log level."
    )


class Settings(HttpSettings, CoreSettings):
    """The effective settings of one process."""

    # An empty variable counts as not set, so that a compose file can pass variables through.
    model_config = SettingsConfigDict(
        env_prefix="TREADLE_",
        env_ignore_empty=True,
        toml_file="treadle.toml",
        extra="ignore",
        frozen=True,
    )

    @field_validator(
        "queues",
        "capabilities",
        "models",
        "webhook_ports",
        "dispatch_ports",
        "allowed_hosts",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(**overrides: object) -> Settings:
    """Read the settings; an override that is None is ignored."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = "; ".join(
            f"{_place(*item['loc'], given=given)}: {item['msg']}" for item in error.errors()
        )
        raise ConfigurationError(
            f"invalid settings: {problems}",
            hint="Correct or unset them; treadle config show lists all settings.",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"treadle.toml cannot be read: {error}", hint="Write it as TOML: name = value."
        ) from None


def _place(first: str | int, *rest: str | int, given: dict[str, object]) -> str:
    """Return what to change: the variable that was read, or the name in the file."""
    name = str(first).lower().removeprefix("treadle_")
    kind, _, variable = ("given" if name in given else origin(name)).partition(" ")
    return ".".join(str(part) for part in (variable if kind == "environment" else name, *rest))


def origin(name: str) -> str:
    """Return the source of a setting: environment, file or default."""
    for variable in filter(None, (f"TREADLE_{name.upper()}", FALLBACK_VARIABLES.get(name))):
        if os.environ.get(variable):
            return f"environment {variable}"
    file = Path("treadle.toml")
    if file.is_file() and name in tomllib.loads(file.read_text()):
        return "treadle.toml"
    return "default"


def unknown_settings() -> list[str]:
    """Return a sentence for each name that looks like a setting but is none, perhaps misspelt."""
    from difflib import get_close_matches

    fields = list(Settings.model_fields)
    variables = [f"TREADLE_{name.upper()}" for name in fields]
    found = [(name, variables) for name in os.environ if name.startswith("TREADLE_")]
    file = Path("treadle.toml")
    if file.is_file():
        found += [(name, fields) for name in tomllib.loads(file.read_text(encoding="utf-8"))]
    sentences = []
    for name, known in found:
        if name in known or name.startswith(OTHER_VARIABLES):
            continue
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else " treadle config show lists all settings."
        sentences.append(f"{name} is not a setting.{hint}")
    return sentences


def warn_about_unknown_settings() -> None:
    """Warn about each unknown setting once in this process: in its log, or on stderr."""
    for sentence in unknown_settings():
        if sentence in _warned:
            continue
        _warned.add(sentence)
        if structlog.is_configured():
            log.warning("setting.unknown", reason=sentence)
        else:
            warnings.warn(sentence, stacklevel=3)


def data_home() -> Path:
    """Return the data folder of the user."""
    home = os.environ.get("XDG_DATA_HOME")
    return Path(home) if home else Path.home() / ".local" / "share"


def child_environment(**extra: str) -> dict[str, str]:
    """Return the environment for a process that treadle starts."""
    return {**os.environ, **extra}


def bare_environment(**extra: str) -> dict[str, str]:
    """Return the environment without database settings, for a program that must not use them."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TREADLE_", "PG")) and name != "DATABASE_URL"
    }
    return {**kept, **extra}


def new_agent_id() -> str:
    """Return a unique, readable agent id."""
    return f"{socket.gethostname()}.{os.getpid()}.{os.urandom(3).hex()}"
