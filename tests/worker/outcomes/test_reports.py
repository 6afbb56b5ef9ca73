"""Decision reports: a type that requires one rejects completions without it."""

from typing import Any

import pytest

from tests.drivers.workers import Conn, row, rows, run_all
from treadle import Context, Decision, DecisionReport, Treadle
from treadle.fields import RetryPolicy
from treadle.models import described

pytestmark = pytest.mark.requirement("R7")

AT_ONCE: RetryPolicy = {"strategy": "immediate"}
STORED = "select status, decision_report from treadle.task_details where id = %s"
REPORT: dict[str, Any] = {
    "summary": "Moved to B",
    "confidence": 0.8,
    "goal": "spend less",
    "decisions": [
        {"decision": "B", "reason": "half the cost", "options": ["A", "B"], "reversible": False}
    ],
    "risks": ["B is new"],
}


class Own(DecisionReport):
    """A report with a field of its own."""

    owner: str = "ops"


@pytest.mark.parametrize("how", ["fields", "mapping", "model", "own model"])
async def test_a_report_is_stored_with_the_output(app: Treadle, conn: Conn, how: str) -> None:
    @app.task(report="required")
    async def decide(ctx: Context) -> str:
        ctx.report(summary="a first thought", confidence=0)
        if how == "fields":
            ctx.report(**REPORT)
        elif how == "mapping":
            ctx.report(REPORT)
        else:
            ctx.report((DecisionReport if how == "model" else Own)(**REPORT))
        return "B"

    handle = await decide.enqueue()

    await run_all(app)

    ended, report = await row(conn, STORED, handle.id)
    assert ended == "completed"
    assert {name: report[name] for name in REPORT} == REPORT
    assert report.get("owner") == ("ops" if how == "own model" else None)


async def test_without_the_report_the_attempt_fails_and_the_next_one_gets_the_message(
    app: Treadle, conn: Conn
) -> None:
    @app.task(report="required", retry=AT_ONCE)
    async def decide(ctx: Context) -> list[Any]:
        if ctx.previous_attempts:
            ctx.report(summary="now I know", confidence=1)
        return [past["feedback"] for past in ctx.previous_attempts]

    handle = await decide.enqueue()

    await run_all(app)

    [[told]] = await handle.result(timeout=5)
    assert "a decision report is required" in told
    [[kind]] = await rows(conn, "select class from treadle.attempts")
    assert kind == "invalid_output"


async def test_a_report_that_is_wanted_since_the_claim_is_missed_when_completing(
    app: Treadle, conn: Conn
) -> None:
    @app.task(retry=AT_ONCE, max_attempts=2)
    async def decide(ctx: Context) -> int:
        if ctx.attempt == 1:
            await app.db.types.define("decide", {"report": "required"})
        else:
            ctx.report(summary="done", confidence=0.5)
        return ctx.attempt

    handle = await decide.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == 2
    [[kind, feedback]] = await rows(conn, "select class, feedback from treadle.attempts")
    assert kind == "invalid_output"
    assert "a decision report is required" in feedback[0]


async def test_a_report_out_of_shape_is_refused_field_by_field(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1)
    async def decide(ctx: Context) -> None:
        ctx.report(summary=" ", confidence=7, decisions=[{"decision": "B"}])

    await decide.enqueue()

    await run_all(app)

    [[kind, feedback]] = await rows(conn, "select class, feedback from treadle.attempts")
    assert kind == "invalid_output"
    assert [each.split(": ")[1] for each in feedback] == [
        "summary",
        "confidence",
        "decisions.0.reason",
    ]


@pytest.mark.own_database
@pytest.mark.parametrize("told", [True, False])
async def test_a_transaction_that_completes_needs_the_report_as_well(
    app: Treadle, conn: Conn, told: bool
) -> None:
    await conn.execute("create table effects (what text)")

    @app.task(report="required", max_attempts=1)
    async def pay(ctx: Context) -> None:
        async with ctx.transaction(output="x") as tx:
            await tx.execute("insert into effects values ('paid')")
            if told:
                ctx.report(summary="paid", confidence=1)

    handle = await pay.enqueue()

    await run_all(app)

    ended, report = await row(conn, STORED, handle.id)
    paid = await rows(conn, "select * from effects")
    if told:
        assert (ended, report["summary"], paid) == ("completed", "paid", [("paid",)])
    else:
        assert (ended, report, paid) == ("dead_lettered", None, [])
        [[kind, feedback]] = await rows(conn, "select class, feedback from treadle.attempts")
        assert kind == "invalid_output"
        assert "a decision report is required" in feedback[0]


def test_a_report_is_readable() -> None:
    report = DecisionReport(
        summary="Moved to B",
        confidence=0.8,
        goal="spend less",
        decisions=[
            Decision(decision="B", reason="half the cost", options=["A", "B"], reversible=False)
        ],
        follow_ups=["watch B"],
    )

    assert described(report.model_dump()).splitlines() == [
        "Moved to B (80% sure)",
        "goal: spend less",
        "decided: B (of A, B): half the cost (cannot be undone)",
        "follow ups: watch B",
    ]
