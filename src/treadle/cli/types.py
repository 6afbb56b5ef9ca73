"""`treadle types`: the kinds of tasks, their settings, and whether they are claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

types = common.group(
    """List the types of tasks; pause, resume and define them.

    \b
    Example:
      treadle types pause deploy --reason "the cluster is being moved"
    """
)

Name = Annotated[str, typer.Argument(metavar="TYPE", help="The type's name.")]


def _validators(rules: list[dict[str, Any]] | None) -> str:
    return output.line([str(rule.get("validator")) for rule in rules] if rules else None)


COLUMNS = [
    Column("type", "type"),
    Column("state", "state", output.state),
    Column("priority", "priority", right=True),
    Column("attempts", "max_attempts", right=True),
    Column("timeout", "timeout_s", output.length, right=True),
    Column("gates", "gates"),
    Column("max_usd", "max_cost_usd", right=True, extra=True),
    Column("max_tokens", "max_tokens", right=True, extra=True),
    Column("validation", "validation", _validators, extra=True),
    Column("report", "report", extra=True),
    Column("models", "models", extra=True),
    Column("reason", "paused_reason", extra=True),
    Column("description", "description"),
]


@types.command("list")
def list_types(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the types with their settings; a dash leaves it to the queue.

    \b
    Example:
      treadle types list --json
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.types.list()

    output.show(common.call(work, database_url), COLUMNS, as_json=as_json)


@types.command()
def pause(
    type: Name,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let no more tasks of a type be claimed; what runs, runs on.

    \b
    Example:
      treadle types pause deploy --reason "the cluster is being moved"
    """
    common.call_db(lambda db: db.types.pause(type, reason), database_url)
    text = f"type {type} is paused; go on with: treadle types resume {type}"
    output.print_done(text, as_json, name=type, status="paused")


@types.command()
def resume(
    type: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let a paused type go on.

    \b
    Example:
      treadle types resume deploy
    """
    common.call_db(lambda db: db.types.resume(type), database_url)
    output.print_done(f"type {type} is open", as_json, name=type, status="open")


@types.command()
def define(
    type: Name,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is.")] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="Of tasks that do not say: 0 first, 100 last.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts before a task is a dead letter.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Longest run of an attempt.")
    ] = None,
    gate: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="A gate before its tasks; repeatable.")
    ] = None,
    breaker: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="threshold, first_probe_s, cooldown_s: JSON, @file, -."),
    ] = None,
    retry: Annotated[
        str | None, typer.Option(metavar="JSON", help="Retry policy: JSON, @file or -.")
    ] = None,
    max_cost_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="What a task may cost.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens that a task may use.")
    ] = None,
    on_budget: Annotated[
        str | None, typer.Option(metavar="WORD", help="When money runs out: ask or fail.")
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="What checks an output, in order: JSON, @file or -."),
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="WORD", help="A decision report: required or optional.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A model to use; repeatable.")
    ] = None,
    fallback_model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One from the third attempt on; repeatable."),
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a type, or change one; what is not named stays as it is.

    \b
    Example:
      treadle types define deploy --max-attempts 5 --gate cluster
      treadle types define deploy --breaker '{"threshold": 3}'
      treadle types define verdict --report required \\
        --validation '[{"validator": "regex", "pattern": "^(yes|no)$"}]'
    """
    settings: dict[str, Any] = {
        "description": description,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout_s": timeout,
        "gates": gate or None,
        "breaker": common.json_argument(breaker, "breaker") if breaker is not None else None,
        "retry": common.json_argument(retry, "retry") if retry is not None else None,
        "max_cost_usd": max_cost_usd,
        "max_tokens": max_tokens,
        "on_budget": on_budget,
        "validation": common.json_value(validation, "validation")
        if validation is not None
        else None,
        "report": report,
        "models": model or None,
        "fallback_models": fallback_model or None,
    }
    named = {name: value for name, value in settings.items() if value is not None}
    common.call_db(lambda db: db.types.define(type, named), database_url)
    output.print_done(f"type {type} is defined", as_json, name=type, status="defined")
