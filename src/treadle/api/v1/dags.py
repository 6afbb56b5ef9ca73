"""`/v1/dags`: tasks that wait for each other, made whole, started, cancelled, run again."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_dags as models
from treadle.api.v1.fields import Note, Reason
from treadle.api.v1.plans import (
    check_key,
    check_options,
    check_references,
    own_name,
    own_project,
    with_defaults,
)
from treadle.api.v1.reach import check_places, is_bound, whole_dags
from treadle.api.v1.rows import hide_names
from treadle.api.wire import answer, record
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.errors import Forbidden, InvalidArgument
from treadle.json import encode
from treadle.producer.dag import dag_json

router = APIRouter(prefix="/v1/dags", tags=["dags"])


@router.post(
    "",
    status_code=201,
    response_model=models.MadeDag,
    responses={
        200: {"model": models.MadeDag, "description": "There was one with this key."},
        **answers(404, 409),
    },
    dependencies=[need("enqueue")],
)
async def create(plan: models.Plan, views: Views, who: Who, once: Once) -> Response:
    """Make a DAG with all its tasks, or nothing."""
    given = plan.named()
    await _check_plan(given, views, who)
    whole = dag_json(given.pop("name"), {**given, "created_by": who.name})
    document = encode(whole, name="dag")

    async def effect(calls: Gateway) -> Response:
        dag_id, created, ids = await calls.create_dag(document)
        if not created:
            await _check_key(Reader(calls), dag_id, who)
        made = {"id": dag_id, "created": created, "tasks": ids}
        return answer(made, 201 if created else 200, {"Location": f"/v1/dags/{dag_id}"})

    try:
        return await once(effect)
    except InvalidArgument as error:
        # Another DAG has the key. The transaction is over, and its connection given back.
        if "dag_id" in error.detail:
            await _check_key(views, error.detail["dag_id"], who)
        raise


@router.get("", response_model=Listed[models.Dag], dependencies=[need("read")])
async def list_dags(
    views: Views, page: Page, who: Who, status: models.Status | None = None
) -> Response:
    """DAGs with how far they are, the newest first."""
    rows = await views.page(
        "dag_overview",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        newest=True,
        where={"status = {}": status, **whole_dags(who, "dag_overview.id")},
    )
    return page.answer(rows, "id")


@router.get(
    "/{dag_id}", response_model=models.Dag, responses=answers(404), dependencies=[need("read")]
)
async def show(dag_id: UUID, views: Views, who: Who) -> Response:
    """One DAG with its counts."""
    await _check(views, dag_id, who)
    return answer(record(await views.dag(dag_id)))


@router.get(
    "/{dag_id}/tasks",
    response_model=Listed[models.DagTask],
    responses=answers(404),
    dependencies=[need("read")],
)
async def tasks(dag_id: UUID, views: Views, page: Page, who: Who) -> Response:
    """The tasks of a DAG with what they wait for, in the order in which they were made."""
    await _check(views, dag_id, who)
    await views.dag(dag_id)
    rows = await views.page(
        "dag_tasks",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        where={"dag_id = {}": dag_id},
    )
    await hide_names(who, views, rows)
    return page.answer(rows, "id")


@router.post(
    "/{dag_id}/start",
    response_model=models.Started,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def start(dag_id: UUID, views: Views, who: Who, once: Once) -> Response:
    """Let the tasks run of a DAG that was held; one that runs already goes on."""
    await _check(views, dag_id, who)

    async def effect(calls: Gateway) -> Response:
        return answer({"id": dag_id, "tasks": await calls.start_dag(dag_id, who.name)})

    return await once(effect)


@router.post(
    "/{dag_id}/cancel",
    response_model=models.Cancelled,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def cancel(
    dag_id: UUID, views: Views, who: Who, once: Once, why: Reason | None = None
) -> Response:
    """Cancel what has not ended of a DAG."""
    await _check(views, dag_id, who)
    reason = why.reason if why else None

    async def effect(calls: Gateway) -> Response:
        return answer({"id": dag_id, "cancelled": await calls.cancel_dag(dag_id, reason, who.name)})

    return await once(effect)


@router.post(
    "/{dag_id}/retry",
    response_model=models.Retried,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def retry(
    dag_id: UUID, views: Views, who: Who, once: Once, why: Note | None = None
) -> Response:
    """Run again what gave up or was cancelled in a DAG; what is completed stays."""
    await _check(views, dag_id, who)
    note = why.note if why else None

    async def effect(calls: Gateway) -> Response:
        return answer({"id": dag_id, "retried": await calls.retry_dag(dag_id, note, who.name)})

    return await once(effect)


async def _check(views: Reader, dag_id: UUID, who: Principal) -> None:
    """A token that is bound needs all tasks of a DAG to be in its reach."""
    if is_bound(who):
        check_places(who, await views.dag_places(dag_id))


async def _check_key(views: Reader, dag_id: Any, who: Principal) -> None:
    """Do not tell of a DAG elsewhere that has the key of a new one."""
    if is_bound(who):
        check_key(who, await views.dag_places(dag_id))


async def _check_plan(plan: dict[str, Any], views: Reader, who: Principal) -> None:
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
    await check_references(who, views, tasks)
