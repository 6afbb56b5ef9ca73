"""`/v1/budgets` and `/v1/spend`: limits on spend, costs, and tasks that wait for a budget."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, Access, requires
from treadle.api.bodies import INT64, Body, Text, Usd, json_response, json_row, json_rows
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers

router = APIRouter(prefix="/v1", tags=["budgets"])
Read = Annotated[Access, requires("read", on=SHARED)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
Scope = Literal["agent", "dag", "project", "type", "all"]
Period = Literal["hour", "day", "week", "month"]
BudgetId = Annotated[int, Path(ge=1, le=INT64)]


class BudgetSettings(Body):
    """A limit for an agent, a DAG, a project, a type or all tasks: in total, or in each period."""

    scope: Scope
    key: Text | None = Field(
        None, max_length=200, description="Id of the agent, DAG, project or type; absent for all."
    )
    period: Period | None = Field(
        None, description="Starts in UTC; without one the limit is for all time."
    )
    limit_usd: Usd
    on_exhausted: Literal["ask", "fail"] | None = None


class Budget(BaseModel):
    """A budget with the amounts spent, reserved and left."""

    id: int
    scope: Scope
    key: str
    name: str | None
    period: Period | None
    limit_usd: float
    spent_usd: float
    reserved_usd: float
    left_usd: float
    overrun_usd: float
    on_exhausted: str
    parked_tasks: int
    open_wait: UUID | None
    period_start: datetime | None
    period_end: datetime | None
    set_by: str | None
    created_at: datetime


class Spent(BaseModel):
    """The cost of one agent, model, type, project or day."""

    of: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float


class Spending(BaseModel):
    """The cost of the last days, highest first."""

    by: str
    days: int
    items: list[Spent]


@router.get("/budgets", response_model=Listed[Budget])
async def list_budgets(access: Read, page: Page, scope: Scope | None = None) -> Response:
    """List budgets.

    The response has the money that is spent, reserved and left, and the number of waiting tasks.
    """
    rows = await access.db.budgets.page(scope=scope, after=page.after(int), limit=page.more)
    return page.answer(rows, "id")


@router.put(
    "/budgets",
    response_model=Budget,
    responses=answers(404, 409),
)
async def put(settings: BudgetSettings, access: Operate) -> Response:
    """Create or change a budget.

    A budget is identified by its `scope`, `key` and `period`.
    """
    budget_id = await access.db.budgets.set(
        settings.scope,
        settings.key,
        Decimal(str(settings.limit_usd)),
        period=settings.period,
        on_exhausted=settings.on_exhausted,
        actor=access.caller.name,
    )
    return json_response(json_row(await access.db.budgets.get(budget_id)))


@router.get(
    "/budgets/{budget_id}",
    response_model=Budget,
    responses=answers(404),
)
async def show(budget_id: BudgetId, access: Read) -> Response:
    """Get a budget.

    The response has the money that is spent, reserved and left, and the number of waiting tasks.
    """
    return json_response(json_row(await access.db.budgets.get(budget_id)))


@router.delete(
    "/budgets/{budget_id}",
    status_code=204,
    responses=answers(404),
)
async def remove(budget_id: BudgetId, access: Operate) -> Response:
    """Remove a budget.

    Tasks that waited for it continue.
    """
    found = await access.db.budgets.get(budget_id)
    await access.db.budgets.remove(
        found["scope"], found["key"] or None, period=found["period"], actor=access.caller.name
    )
    return Response(status_code=204)


@router.get("/spend", response_model=Spending)
async def spend(
    access: Read,
    by: Literal["agent", "model", "type", "project", "day"] = "agent",
    days: Annotated[int, Query(ge=1, le=3650, description="Including today.")] = 7,
) -> Response:
    """Sum up costs.

    The sums are of the last `days`, by agent, model, type, project or day (UTC).
    """
    rows = await access.db.budgets.spending(by, days)
    items = [{"of": row.pop(by), **row} for row in json_rows(rows)]
    return json_response({"by": by, "days": days, "items": items})
