"""`/v1/budgets` and `/v1/spend`: what may be spent, what is, and who waits for money."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Db, check_everywhere, requires
from treadle.api.bodies import INT64, Body, Text, Usd
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row, json_rows
from treadle.db.database import Database
from treadle.errors import UnknownBudget

router = APIRouter(prefix="/v1", tags=["budgets"])
Scope = Literal["agent", "dag", "project", "type", "all"]
Period = Literal["hour", "day", "week", "month"]
BudgetId = Annotated[int, Path(ge=1, le=INT64)]


class BudgetSettings(Body):
    """What an agent, a DAG, a project, a type or all may spend, for good or in each period."""

    scope: Scope
    key: Text | None = Field(None, max_length=200, description="Whose; none for all.")
    period: Period | None = Field(None, description="Of UTC; none is for good.")
    limit_usd: Usd
    on_exhausted: Literal["ask", "fail"] | None = None


class Budget(BaseModel):
    """A budget with what is spent, reserved and left."""

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
    """What one of them has cost."""

    of: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float


class Spending(BaseModel):
    """What the last days have cost, the most first."""

    by: str
    days: int
    items: list[Spent]


@router.get("/budgets", response_model=Listed[Budget], dependencies=[requires("read")])
async def list_budgets(db: Db, page: Page, who: Caller, scope: Scope | None = None) -> Response:
    """Every budget, with who waits for it."""
    check_everywhere(who)
    rows = await db.calls.page(
        "budget_status",
        key="id",
        after=page.after(int),
        limit=page.more,
        where={"scope = {}": scope},
    )
    return page.answer(rows, "id")


@router.put(
    "/budgets",
    response_model=Budget,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def put(settings: BudgetSettings, db: Db, who: Caller) -> Response:
    """Set the budget of a scope, a key and a period, or change it."""
    check_everywhere(who)
    budget_id = await db.budgets.set(
        settings.scope,
        settings.key,
        Decimal(str(settings.limit_usd)),
        period=settings.period,
        on_exhausted=settings.on_exhausted,
        actor=who.name,
    )
    return json_response(json_row(await _found(db, budget_id)))


@router.get(
    "/budgets/{budget_id}",
    response_model=Budget,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(budget_id: BudgetId, db: Db, who: Caller) -> Response:
    """One budget."""
    check_everywhere(who)
    return json_response(json_row(await _found(db, budget_id)))


@router.delete(
    "/budgets/{budget_id}",
    status_code=204,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def remove(budget_id: BudgetId, db: Db, who: Caller) -> Response:
    """Remove a budget; tasks that waited for it go on."""
    check_everywhere(who)
    found = await _found(db, budget_id)
    await db.budgets.remove(
        found["scope"], found["key"] or None, period=found["period"], actor=who.name
    )
    return Response(status_code=204)


@router.get("/spend", response_model=Spending, dependencies=[requires("read")])
async def spend(
    db: Db,
    who: Caller,
    by: Literal["agent", "model", "type", "project", "day"] = "agent",
    days: Annotated[int, Query(ge=1, le=3650, description="Today included.")] = 7,
) -> Response:
    """What the last days have cost, by agent, model, type, project or day (UTC)."""
    check_everywhere(who)
    rows = await db.budgets.spending(by, days)
    items = [{"of": row.pop(by), **row} for row in json_rows(rows)]
    return json_response({"by": by, "days": days, "items": items})


async def _found(db: Database, budget_id: int) -> dict[str, Any]:
    rows = await db.calls.page("budget_status", key="id", limit=1, where={"id = {}": budget_id})
    if not rows:
        raise UnknownBudget(f"there is no budget {budget_id}", budget_id=budget_id)
    return rows[0]
