"""`/v1/dags`: tasks that wait for each other, made whole, started, cancelled, run again."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_key,
    check_options,
    check_places,
    check_references,
    is_restricted,
    own_name,
    own_project,
    redact_names,
    requires,
    whole_dags,
    with_defaults,
)
from treadle.api.bodies import Body, Id, Moment, Name, Note, Object, Reason, Seconds, Text, Usd
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.errors import Forbidden, InvalidArgument
from treadle.json import encode
from treadle.producer.dag import dag_document

MOST_TASKS = 10_000
Status = Literal["open", "running", "failed", "completed", "cancelled"]
router = APIRouter(prefix="/v1/dags", tags=["dags"])


class Edge(Body):
    """A task that must have ended before; an optional one may also have failed."""

    task: Name
    optional: bool = False


class NodeOptions(Body):
    """What can be said of a task of a DAG besides its name and its edges."""

    type: Name | None = None
    queue: Name | None = None
    spec: Object | None = None
    title: Text | None = Field(None, max_length=1000)
    priority: int | None = Field(None, ge=0, le=100)
    urgency: int | None = Field(None, ge=0, le=100)
    tier: Literal["critical", "high", "normal", "low", "background"] | None = None
    delay_s: Seconds | None = None
    run_at: Moment | None = None
    deadline_at: Moment | None = None
    timeout_s: Seconds | None = None
    max_attempts: int | None = Field(None, ge=1, le=1000)
    ageing_rate: float | None = Field(None, ge=0, le=1000)
    retry: Object | None = None
    capabilities: list[Name] | None = Field(None, max_length=100)
    assigned_agent: Name | None = None
    consumer: Name | None = None
    tags: list[Name] | None = Field(None, max_length=100)
    source: Text | None = Field(None, max_length=200)
    source_job: Text | None = Field(None, max_length=200)
    external_ref: Text | None = Field(None, max_length=1000)
    notes: Text | None = Field(None, max_length=10_000)
    project: Name | None = None
    project_id: Id | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    on_budget: Literal["ask", "fail"] | None = None
    validation: list[Object] | None = Field(None, max_length=20)
    report: Literal["required", "optional"] | None = None
    models: list[Name] | None = Field(None, max_length=20)
    fallback_models: list[Name] | None = Field(None, max_length=20)
    gates: list[Name] | None = Field(None, max_length=20)
    concurrency_key: Name | None = None
    concurrency_limit: int | None = Field(None, ge=1, le=1_000_000)


class Node(NodeOptions):
    """A task of a DAG; without a name it has that of its type."""

    name: Text | None = Field(None, min_length=1, max_length=100)
    after: list[Name | Edge] | None = Field(
        None, max_length=1000, description="Tasks that come before: names, or ids of any task."
    )
    inputs: dict[str, Any] | None = Field(
        None, description='Arguments from other tasks: {"brief": "task:research:output"}.'
    )


class Plan(Body):
    """A whole DAG; all of it is stored, or nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Build landing page",
                    "tasks": [
                        {"name": "research", "type": "research", "spec": {"topic": "rivals"}},
                        {"name": "build", "type": "code", "after": ["research"]},
                    ],
                }
            ]
        }
    )

    name: Text = Field(min_length=1, max_length=1000)
    tasks: list[Node] = Field(min_length=1, max_length=MOST_TASKS)
    defaults: NodeOptions | None = Field(None, description="For tasks that do not say.")
    key: Name | None = Field(None, description="A second DAG with this key is the first one.")
    hold: bool = Field(False, description="Let it wait until it is started.")
    on_dead_letter: Literal["wait", "cancel", "continue"] | None = None
    budget_usd: Usd | None = None
    project_id: Id | None = None
    meta: Object | None = None


class MadeDag(BaseModel):
    """A DAG that was made, or the one that has the key already; tasks in the order given."""

    id: UUID
    created: bool
    tasks: list[UUID]


class Dag(BaseModel):
    """A DAG and how far it is."""

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
    """A task that another one waits for or waited for."""

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
    """A DAG that runs, with so many tasks."""

    id: UUID
    tasks: int


class Cancelled(BaseModel):
    """So many tasks were cancelled."""

    id: UUID
    cancelled: int


class Retried(BaseModel):
    """So many tasks run again."""

    id: UUID
    retried: int


@router.post(
    "",
    status_code=201,
    response_model=MadeDag,
    responses={
        200: {"model": MadeDag, "description": "There was one with this key."},
        **answers(404, 409),
    },
    dependencies=[requires("enqueue")],
)
async def create(plan: Plan, db: Db, who: Caller, once: Once) -> Response:
    """Make a DAG with all its tasks, or nothing."""
    given = plan.named()
    await _check_plan(given, db, who)
    whole = dag_document(given.pop("name"), {**given, "created_by": who.name})
    document = encode(whole, name="dag")

    async def effect(db: Database) -> Response:
        dag_id, created, ids = await db.dags.create(document)
        if not created:
            await _check_key(db, dag_id, who)
        made = {"id": dag_id, "created": created, "tasks": ids}
        return json_response(made, 201 if created else 200, {"Location": f"/v1/dags/{dag_id}"})

    try:
        return await once(effect)
    except InvalidArgument as error:
        # Another DAG has the key. The transaction is over, and its connection given back.
        if "dag_id" in error.detail:
            await _check_key(db, error.detail["dag_id"], who)
        raise


@router.get("", response_model=Listed[Dag], dependencies=[requires("read")])
async def list_dags(db: Db, page: Page, who: Caller, status: Status | None = None) -> Response:
    """DAGs with how far they are, the newest first."""
    rows = await db.calls.page(
        "dag_overview",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        newest=True,
        where={"status = {}": status, **whole_dags(who, "dag_overview.id")},
    )
    return page.answer(rows, "id")


@router.get(
    "/{dag_id}", response_model=Dag, responses=answers(404), dependencies=[requires("read")]
)
async def show(dag_id: UUID, db: Db, who: Caller) -> Response:
    """One DAG with its counts."""
    await _check(db, dag_id, who)
    return json_response(json_row(await db.dags.get(dag_id)))


@router.get(
    "/{dag_id}/tasks",
    response_model=Listed[DagTask],
    responses=answers(404),
    dependencies=[requires("read")],
)
async def tasks(dag_id: UUID, db: Db, page: Page, who: Caller) -> Response:
    """The tasks of a DAG with what they wait for, in the order in which they were made."""
    await _check(db, dag_id, who)
    await db.dags.get(dag_id)
    rows = await db.calls.page(
        "dag_tasks",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        where={"dag_id = {}": dag_id},
    )
    await redact_names(who, db, rows)
    return page.answer(rows, "id")


@router.post(
    "/{dag_id}/start",
    response_model=Started,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def start(dag_id: UUID, db: Db, who: Caller, once: Once) -> Response:
    """Let the tasks run of a DAG that was held; one that runs already goes on."""
    await _check(db, dag_id, who)

    async def effect(db: Database) -> Response:
        return json_response({"id": dag_id, "tasks": await db.dags.start(dag_id, who.name)})

    return await once(effect)


@router.post(
    "/{dag_id}/cancel",
    response_model=Cancelled,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def cancel(
    dag_id: UUID, db: Db, who: Caller, once: Once, why: Reason | None = None
) -> Response:
    """Cancel what has not ended of a DAG."""
    await _check(db, dag_id, who)
    reason = why.reason if why else None

    async def effect(db: Database) -> Response:
        return json_response(
            {"id": dag_id, "cancelled": await db.dags.cancel(dag_id, reason, who.name)}
        )

    return await once(effect)


@router.post(
    "/{dag_id}/retry",
    response_model=Retried,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def retry(dag_id: UUID, db: Db, who: Caller, once: Once, why: Note | None = None) -> Response:
    """Run again what gave up or was cancelled in a DAG; what is completed stays."""
    await _check(db, dag_id, who)
    note = why.note if why else None

    async def effect(db: Database) -> Response:
        return json_response({"id": dag_id, "retried": await db.dags.retry(dag_id, note, who.name)})

    return await once(effect)


async def _check(db: Database, dag_id: UUID, who: Principal) -> None:
    """A token that is bound needs all tasks of a DAG to be in its reach."""
    if is_restricted(who):
        check_places(who, await db.access.of_dag(dag_id))


async def _check_key(db: Database, dag_id: Any, who: Principal) -> None:
    """Do not tell of a DAG elsewhere that has the key of a new one."""
    if is_restricted(who):
        check_key(who, await db.access.of_dag(dag_id))


async def _check_plan(plan: dict[str, Any], db: Database, who: Principal) -> None:
    """Refuse tasks that are not in reach of the token; its project is the default."""
    if who.project_id is not None:
        if plan.get("project_id") is not None:
            raise Forbidden(
                f"{who.name} may name a project by its name only", argument="project_id"
            )
        plan["defaults"] = {**own_name(who), **(plan.get("defaults") or {})}
    tasks = with_defaults(plan["tasks"], plan.get("defaults"))
    for task in tasks:
        check_options(who, task)
    if who.project_id is not None:
        plan["tasks"] = [own_project(who, task) for task in plan["tasks"]]
        plan["defaults"] = own_project(who, plan["defaults"])
    await check_references(who, db, tasks)
