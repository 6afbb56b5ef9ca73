"""The bodies of what a running task asks for."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import INT64, Body, Id, Moment, Name, Object, Seconds, Text, Usd
from treadle.api.v1.models_claims import Json, Token
from treadle.api.v1.models_dags import Node
from treadle.api.v1.models_tasks import BATCH, Made

Ids = Annotated[list[Id], Field(max_length=BATCH)]
Spent = Annotated[Usd, Field(le=1_000_000)]
Tokens = Annotated[int, Field(ge=0, le=999_999_999_999)]


class PaidCall(Body):
    """One call that was paid for; the same `call_id` counts once."""

    call_id: Name | None = None
    usd: Spent | None = None
    model: Name | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


Calls = Annotated[list[PaidCall], Field(max_length=BATCH)]


class SaveStep(Token):
    """The result of a step, so that no later attempt does it again."""

    name: Name
    output: Json
    input_hash: Name | None = None
    input: Text | None = Field(None, max_length=2000, description="For people.")
    took_s: Seconds = 0.0
    calls: Calls = Field(default_factory=list)


class Saved(BaseModel):
    """What is kept under the name: the first result stays. `verdict` is ok, ask or fail."""

    output: Any
    verdict: str


class Spend(Token):
    """What was paid for."""

    calls: Calls = Field(min_length=1)


class Reserve(Token):
    """What the next call may cost."""

    usd: Spent
    ask: bool = Field(True, description="Open a wait that asks for money where there is none.")


class Money(BaseModel):
    """What the task has cost and may still spend; `verdict` is ok, ask or fail."""

    cost_usd: float
    max_cost_usd: float | None
    left_usd: float | None
    verdict: str
    reason: str | None
    wait_id: UUID | None


class Ask(Token):
    """A question, an approval (with `approvers`), or an event to wait for, under a name."""

    name: Name
    question: Text | None = Field(None, max_length=20_000)
    context: Json = None
    options: Annotated[list[Json], Field(max_length=100)] | None = None
    schema_: Object | bool | None = Field(None, alias="schema")
    approvers: int | None = Field(None, ge=1, le=1000)
    event: Name | None = None
    key: Name | None = None
    expires_s: Seconds | None = None
    expires_at: Moment | None = None
    on_expiry: Name | None = None
    default: Json = None


class Asked(BaseModel):
    """The wait; `answer` is there once it has ended."""

    wait_id: UUID | None
    status: str
    answer: Any


class Suspend(Token):
    """What to wait for: subtasks, waits, or a moment. The claim ends, no attempt is burnt."""

    children: Ids = Field(default_factory=list)
    waits: Ids = Field(default_factory=list)
    run_at: Moment | None = None
    optional: bool = Field(False, description="Go on too when children are cancelled or give up.")


class Suspended(BaseModel):
    """blocked, pending, ready or already."""

    id: UUID
    status: str


class Spawn(Token):
    """Subtasks, remembered as a step under this name: the next attempt gets the same ones."""

    name: Name
    tasks: Annotated[list[Node], Field(min_length=1, max_length=BATCH)] = Field(
        description="As POST /v1/dags takes them; their project is that of the task."
    )


class Spawned(BaseModel):
    """One for each task, in their order."""

    items: list[Made]


class LinkArtifact(Token):
    """A file of the task that lies elsewhere."""

    name: Annotated[Text, Field(min_length=1, max_length=1000)]
    uri: Annotated[Text, Field(min_length=1, max_length=4000)]
    media_type: Name | None = None
    bytes: int | None = Field(None, ge=0, le=INT64)
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None


class Linked(BaseModel):
    """The artifact; later tasks refer to it as artifact:<id>."""

    id: UUID
