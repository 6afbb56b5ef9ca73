"""The bodies of the queue interface."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt

State = Literal["pending", "dispatching", "working", "completed", "failed", "cancelled"]
MAX_TIMEOUT_S = 31_536_000


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("it must have something in it")
    return text


class Prompt(BaseModel):
    """What an agent is asked. Fields that are not known are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"prompt": "Fix the tests", "model": "sonnet", "timeout_seconds": 1800}]
        }
    )

    prompt: Annotated[str, AfterValidator(_visible)] = Field(min_length=1, max_length=1_000_000)
    model: str | None = Field(None, max_length=200)
    timeout_seconds: StrictInt | None = Field(
        None, ge=0, le=MAX_TIMEOUT_S, description="0 is as if it were not given."
    )
    session_id: str | None = Field(None, max_length=500)
    project: dict[str, Any] | None = Field(
        None, description="What the agent should know of the project."
    )
    env: dict[str, str] | None = Field(None, description="Variables for the agent's process.")
    thinking: StrictBool | None = None


class Submission(Prompt):
    """What an agent is asked, and who asks."""

    source: str | None = Field(
        None, max_length=100, description="web, scheduler, cli or another word; api by default."
    )
    source_job: str | None = Field(None, max_length=200, description="The job of a scheduler.")


class Queued(BaseModel):
    """Where a new entry stands."""

    queue_id: str
    position: int = Field(description="1 is next.")
    state: State


class QueuedTask(BaseModel):
    """An entry of the queue; what is empty is left out."""

    queue_id: str
    state: State
    position: int | None = Field(None, description="Only of what is pending; 1 is next.")
    created_at: datetime
    prompt: str
    model: str | None = None
    timeout_seconds: int | None = None
    session_id: str | None = None
    project: dict[str, Any] | None = None
    env: dict[str, str] | None = None
    thinking: bool | None = None
    dispatched_at: datetime | None = Field(None, description="When it was sent to its agent.")
    task_id: str | None = Field(None, description="The agent's own id of the task.")
    agent_url: str | None = None
    attempts: int
    last_error: str | None = None
    source: str
    source_job: str | None = None


class Queue(BaseModel):
    """What has not ended: what agents have, then what waits, in order."""

    depth: int = Field(description="How many are pending.")
    max_size: int
    tasks: list[QueuedTask]


class Cancelled(BaseModel):
    """An entry that was cancelled."""

    queue_id: str
    state: State


class QueueStatus(BaseModel):
    """The queue in four numbers."""

    depth: int
    max_size: int
    oldest_age_seconds: int = Field(description="Of the oldest that is pending; 0 without one.")
    dispatched_count: int = Field(description="How many are dispatching or working.")


class Job(BaseModel):
    """A schedule that submits to the queue."""

    name: str
    last_status: str | None = Field(description="queued, skipped_queue_full, and so on.")
    last_queue_id: str | None
    last_run: datetime | None
    next_run: datetime | None


class Status(BaseModel):
    """What this server is, and how its queue stands."""

    type: str = "view"
    interfaces: list[str] = ["statusable", "observable", "taskable"]
    version: str
    queue: QueueStatus
    jobs: list[Job] = Field([], description="Where there are any, for callers that may read.")
