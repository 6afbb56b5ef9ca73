"""The answer of `/v1/artifacts`."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel

from treadle.api.v1.models_tasks import Status


class Artifact(BaseModel):
    """A file of a task; `linked` lies elsewhere, at `uri`, and `storing` is not there yet."""

    id: UUID
    task_id: UUID
    name: str
    status: str
    media_type: str | None
    bytes: int | None
    sha256: str | None
    uri: str
    attempt: int | None
    agent_id: str | None
    queue: str
    type: str
    title: str | None
    task_status: Status
    created_at: datetime
    stored_at: datetime | None
