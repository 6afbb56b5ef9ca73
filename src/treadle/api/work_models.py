"""The bodies of the work API. Fields that are not known are ignored."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from treadle.api.v1.fields import Text

Status = Literal[
    "queued", "dispatched", "in_progress", "blocked", "completed", "failed", "cancelled"
]
Outcome = Literal["success", "failed", "cancelled"]
WORD = r"^[A-Za-z0-9_.:/-]{1,100}$"


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("it must have something in it")
    return text


def _word(text: str) -> str:
    if not re.fullmatch(WORD, text):
        raise ValueError("1 to 100 letters, digits and _ . : / -, no spaces")
    return text


def _utc(moment: datetime) -> datetime:
    """A moment without a zone is taken for UTC; one that no zone could hold is refused."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("this moment is out of range") from None


def _written(value: object) -> object:
    """Moments are ISO 8601; a bare number would be taken for seconds since 1970.

    In an address a plus sign that was not encoded has become a space.
    """
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("ISO 8601 with dashes and colons is needed: 2026-01-31T12:00:00Z")
    return re.sub(r"(T.*) (\d\d:?\d\d)$", r"\1+\2", value)


def _given(value: object) -> object:
    return None if value == "" else value


def unless_empty(kind: Any) -> BeforeValidator:
    """Some languages write an empty text where there is nothing."""
    return BeforeValidator(_given, json_schema_input_type=kind | Literal[""] | None)


Visible = Annotated[Text, AfterValidator(_visible)]
Name = Annotated[Visible, Field(max_length=200)]
Agent = Annotated[Visible, Field(max_length=200, examples=["steve-w"])]
Moment = Annotated[datetime, AfterValidator(_utc)]
Since = Annotated[Moment, BeforeValidator(_written)]


class NewProject(BaseModel):
    """A project to be."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Shopping List API", "external_ref": "todoist:123"}]
        }
    )

    name: Visible = Field(max_length=200)
    external_ref: Text | None = Field(
        None, max_length=1000, description="A Todoist project, a repository, and so on."
    )


class ProjectChange(BaseModel):
    """What is to be changed; what is not named stays as it is."""

    name: Visible | None = Field(None, max_length=200)
    external_ref: Text | None = Field(None, max_length=1000)


class Project(BaseModel):
    """A project."""

    id: UUID
    name: str
    external_ref: str | None
    created_at: datetime
    updated_at: datetime


class NewWork(BaseModel):
    """A work item to be; it is queued until it is dispatched."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "code_review",
                    "description": "Review PR #3 in shopping-list-api",
                    "payload": {"pr": 3, "repo": "shopping-list-api"},
                    "priority": 2,
                    "assigned_agent": "steve-w",
                }
            ]
        }
    )

    type: Annotated[str, AfterValidator(_word)] = Field(
        json_schema_extra={"pattern": WORD}, examples=["code_review"]
    )
    description: Visible = Field(max_length=20_000)
    payload: dict[str, Any] | None = None
    priority: StrictInt | None = Field(3, ge=1, le=5, description="1 is the highest.")
    assigned_agent: Annotated[Agent | None, unless_empty(Agent)] = Field(
        None, description="Who gets it once it is dispatched; need not be registered."
    )
    created_by: Annotated[Name | None, unless_empty(Name)] = None
    project_id: Annotated[UUID | None, unless_empty(UUID)] = None


class WorkChange(BaseModel):
    """What is to be changed; what is not named, null, or (but for notes) empty stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"status": "dispatched", "assigned_agent": "steve-w"},
                {"status": "completed", "outcome": "success", "notes": "merged to main"},
            ]
        }
    )

    status: Annotated[Status | None, unless_empty(Status)] = None
    outcome: Annotated[Outcome | None, unless_empty(Outcome)] = Field(
        None, description="With completed, failed or cancelled."
    )
    notes: Text | None = Field(None, max_length=20_000)
    assigned_agent: Annotated[Agent | None, unless_empty(Agent)] = None
    unless_updated_since: Annotated[Moment | None, unless_empty(Moment)] = Field(
        None, description="The updated_at that was read; refused when the item changed after it."
    )


class WorkItem(BaseModel):
    """A work item."""

    id: UUID
    project_id: UUID | None
    type: str
    description: str
    payload: dict[str, Any]
    priority: int
    status: Status
    assigned_agent: str | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = Field(description="Set once it has ended.")
    outcome: Outcome | None = Field(description="Set once it has ended.")
    notes: str | None


class Dispatch(BaseModel):
    """Who got a work item, when, and how it ended there."""

    id: UUID
    work_item_id: UUID
    dispatched_at: datetime
    agent: str | None
    completed_at: datetime | None
    outcome: Outcome | None


class Change(BaseModel):
    """One change of a work item."""

    id: UUID
    at: datetime
    actor: str
    from_status: Status | None
    to_status: Status
    agent: str | None
    note: str | None


class WorkHistory(WorkItem):
    """A work item with what happened to it."""

    dispatch_history: list[Dispatch]
    changes: list[Change]
