"""`/v1/dags`: create, read, start, cancel and retry DAGs of tasks."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle import fields
from treadle.api.access import DAG, LIST, NEW, Access, requires
from treadle.api.bodies import (
    Body,
    Id,
    Name,
    Note,
    Object,
    Reason,
    Text,
    Usd,
    json_response,
    json_row,
    with_fields,
)
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.errors import InvalidArgument
from treadle.json import encode
from treadle.producer.dag import dag_document

MOST_TASKS = 10_000
Status = Literal["open", "running", "failed", "completed", "cancelled"]
router = APIRouter(prefix="/v1/dags", tags=["dags"])
New = Annotated[Access, requires("enqueue", on=NEW)]
List = Annotated[Access, requires("read", on=LIST)]
Read = Annotated[Access, requires("read", on=DAG)]
Operate = Annotated[Access, requires("operate", on=DAG)]


@with_fields(fields.fields_of(fields.TaskContent, fields.NodeOptions))
class NodeOptions(Body):
    """The options of a task of a DAG besides its name.

    `after` and `inputs` refer to tasks of the DAG by name, and to any task by id.
    """


class Node(NodeOptions):
    """A task of a DAG; its default name is that of its type."""

    name: Text | None = Field(None, min_length=1, max_length=100)


class Plan(Body):
    """A DAG with all its tasks, which are stored in one transaction."""

    name: Text = Field(min_length=1, max_length=1000)
    tasks: list[Node] = Field(min_length=1, max_length=MOST_TASKS)
    defaults: NodeOptions | None = Field(None, description="Defaults for the options of all tasks.")
    key: Name | None = Field(
        None, description="Idempotency key: reusing it returns the existing DAG."
    )
    hold: bool = Field(
        False, description="Do not start it; start it with POST /v1/dags/{id}/start."
    )
    on_dead_letter: Literal["wait", "cancel", "continue"] | None = None
    budget_usd: Usd | None = None
    project_id: Id | None = None
    meta: Object | None = None


class CreatedDag(BaseModel):
    """A new DAG, or the existing one with this key; tasks in the order of the request."""

    id: UUID
    created: bool
    tasks: list[UUID]


class Dag(BaseModel):
    """A DAG with its progress."""

    id: UUID
    name: str
    status: Status
    on_dead_letter: str
    tasks: int
    completed: int
    cancelled: int
    dead_lettered: int
    running: int
    ready: int
    pending: int
    blocked: int
    roots: list[UUID] | None
    leaves: list[UUID] | None
    budget_usd: float | None
    cost_usd: float
    project_id: UUID | None
    created_by: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_s: float | None
    open_waits: int
    meta: dict[str, Any]


class Dependency(BaseModel):
    """A dependency of a task."""

    id: UUID
    name: str | None
    optional: bool
    met: bool


class DagTask(BaseModel):
    """A task of a DAG."""

    dag_id: UUID
    id: UUID
    name: str | None
    title: str | None
    type: str
    queue: str
    status: str
    attempt: int
    max_attempts: int
    blocked_count: int
    is_root: bool
    is_leaf: bool
    depends_on: list[Dependency]
    agent_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    run_at: datetime | None
    retry_at: datetime | None
    wait_s: float
    run_s: float | None
    cost_usd: float
    failure_class: str | None
    failure_reason: str | None
    parent_id: UUID | None


class Started(BaseModel):
    """A started DAG with its number of tasks."""

    id: UUID
    tasks: int


class CancelledDag(BaseModel):
    """The number of cancelled tasks."""

    id: UUID
    cancelled: int


class Retried(BaseModel):
    """The number of retried tasks."""

    id: UUID
    retried: int


@router.post(
    "",
    status_code=201,
    response_model=CreatedDag,
    responses={
        200: {"model": CreatedDag, "description": "A DAG with this key existed."},
        **answers(404, 409),
    },
)
async def create(plan: Plan, access: New, once: Once) -> Response:
    """Create a DAG.

    All its tasks are stored, or nothing. The response is 201, or 200 with `created: false` if its
    `key` exists.
    """
    given = await access.new_dag(plan.named())
    whole = dag_document(given.pop("name"), {**given, "created_by": access.caller.name})
    document = encode(whole, name="dag")

    async def effect(db: Database) -> Response:
        if access.view.is_restricted:
            # If a task that is not visible has one of the keys, nothing is created.
            async with db.transaction() as held:
                dag = await held.dags.create(document)
                if dag.created:
                    await access.check_found_tasks(held, dag.reused)
                else:
                    await access.check_found_dag(held, dag.id)
        else:
            dag = await db.dags.create(document)
        made = {"id": dag.id, "created": dag.created, "tasks": dag.ids}
        return json_response(made, 201 if dag.created else 200, {"Location": f"/v1/dags/{dag.id}"})

    try:
        return await once(effect)
    except InvalidArgument as error:
        # Another DAG has the key. The transaction has ended and its connection is free.
        if "dag_id" in error.detail:
            await access.check_found_dag(access.db, UUID(str(error.detail["dag_id"])))
        raise


@router.get("", response_model=Listed[Dag])
async def list_dags(access: List, page: Page, status: Status | None = None) -> Response:
    """List DAGs.

    Each has its progress; the newest come first.
    """
    rows = await access.db.dags.page(
        access.view, status=status, after=page.after(UUID), limit=page.more
    )
    return page.answer(rows, "id")


@router.get("/{dag_id}", response_model=Dag, responses=answers(404))
async def show(dag_id: UUID, access: Read) -> Response:
    """Get a DAG.

    The response has the number of its tasks in each state.
    """
    return json_response(json_row(await access.db.dags.get(dag_id)))


@router.get(
    "/{dag_id}/tasks",
    response_model=Listed[DagTask],
    responses=answers(404),
)
async def tasks(dag_id: UUID, access: Read, page: Page) -> Response:
    """List the tasks of a DAG.

    Each has its dependencies; they are in the order of creation.
    """
    await access.db.dags.get(dag_id)
    rows = await access.db.dags.task_page(dag_id, after=page.after(UUID), limit=page.more)
    await access.redact_names(rows)
    return page.answer(rows, "id")


@router.post(
    "/{dag_id}/start",
    response_model=Started,
    responses=answers(404, 409),
)
async def start(dag_id: UUID, access: Operate, once: Once) -> Response:
    """Start a held DAG.

    The DAG was created with `hold`; a running one does not change.
    """

    async def effect(db: Database) -> Response:
        return json_response(
            {"id": dag_id, "tasks": await db.dags.start(dag_id, access.caller.name)}
        )

    return await once(effect)


@router.post(
    "/{dag_id}/cancel",
    response_model=CancelledDag,
    responses=answers(404, 409),
)
async def cancel(dag_id: UUID, access: Operate, once: Once, why: Reason | None = None) -> Response:
    """Cancel a DAG.

    Its tasks that have not ended are cancelled.
    """
    reason = why.reason if why else None

    async def effect(db: Database) -> Response:
        return json_response(
            {"id": dag_id, "cancelled": await db.dags.cancel(dag_id, reason, access.caller.name)}
        )

    return await once(effect)


@router.post(
    "/{dag_id}/retry",
    response_model=Retried,
    responses=answers(404, 409),
)
async def retry(dag_id: UUID, access: Operate, once: Once, why: Note | None = None) -> Response:
    """Retry a DAG.

    Its tasks that were dead-lettered or cancelled are retried.
    """
    note = why.note if why else None

    async def effect(db: Database) -> Response:
        return json_response(
            {"id": dag_id, "retried": await db.dags.retry(dag_id, note, access.caller.name)}
        )

    return await once(effect)
