"""`treadle tasks`: list, show, enqueue, cancel, retry, fork, wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import bulk, common, history, out, taskview
from treadle.cli.enqueue import Timeout, enqueue, print_result
from treadle.cli.fork import fork
from treadle.cli.out import Column
from treadle.cli.waits import with_times
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle

tasks = common.group(
    """List, show, enqueue, cancel, retry, fork and await tasks.

    \b
    Example:
      treadle tasks list --status running
    """
)

tasks.command()(fork)
tasks.command()(enqueue)
tasks.command()(bulk.cancel)
tasks.command()(bulk.retry)

COLUMNS = [
    Column("id", "id", out.short),
    Column("status", "status", out.state),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("priority", "priority", right=True, extra=True),
    Column("attempt", "tries", right=True, extra=True),
    Column("agent", "agent_id", extra=True),
    Column("created", "created_at", out.ago),
    Column("about", "about"),
]


@tasks.command("list")
def list_tasks(
    status: Annotated[str | None, typer.Option(help="Only in this state.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    type: Annotated[str | None, typer.Option(help="Only of this type.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only held by this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List tasks, the newest first.

    \b
    Examples:
      treadle tasks list --status running --queue mail
      treadle tasks list --status retrying -q | xargs treadle tasks cancel
    """
    if status is not None and status not in out.STATES:
        raise InvalidArgument(
            f"there is no state {status!r}", hint=common.did_you_mean(status, list(out.STATES))
        )

    async def work(app: Treadle) -> list[dict[str, Any]]:
        reader = await app.reader()
        return await reader.tasks(status=status, queue=queue, type=type, agent=agent, limit=limit)

    rows = common.call(work, database_url)
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["id"])
        return
    if not as_json:
        for row in rows:
            row["tries"] = f"{row['attempt']}/{row['max_attempts']}"
            row["about"] = taskview.last_line(row["failure_reason"]) or row["title"]
    out.show(rows, COLUMNS, as_json=as_json, empty="no task matches")


@tasks.command()
def show(
    task_id: common.TaskId,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show one task, what it did and waits for, and why it is where it is.

    \b
    Example:
      treadle tasks show 9f3a21c4
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], dict[str, list[Any]], list[Any]]:
        reader = await app.reader()
        wanted = task_id.lstrip("….")
        async with history.pointed_to(reader, wanted):
            found = await reader.find_task(wanted)
            task = await reader.task(found)
        parts = {
            "dependencies": await reader.dependencies(task),
            "subtasks": await reader.subtasks(found),
            "steps": await reader.steps(found),
            "waits": await reader.waits(ended=True, task_id=found, limit=1000),
            "artifacts": (await reader.artifacts(task_id=found, limit=1000))[::-1],
            "attempts": await reader.history(found),
        }
        return task, parts, await reader.why(found)

    task, parts, reasons = common.call(work, database_url)
    parts["waits"] = [with_times(each) for each in reversed(parts["waits"])]
    if as_json or not out.console().is_terminal:
        said = "; ".join(each["sentence"] for each in reasons)
        whole = {**task, "why": said, "reasons": reasons, **parts}
        if as_json:
            out.document(whole)
            return
        for name, value in whole.items():
            out.separated([name, value])
        return
    taskview.print_task(task, parts["attempts"], reasons, parts)


@tasks.command()
def wait(
    task_id: common.TaskId,
    timeout: Timeout = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Wait until a task has ended and print its result.

    \b
    Example:
      treadle tasks wait 9f3a21c4 --timeout 60

    Exit code 7: not ended in time. 8: it was dead-lettered or cancelled.
    """

    async def work(app: Treadle) -> None:
        found = await (await app.reader()).find_task(task_id.lstrip("…."))
        await print_result(app, found, timeout=timeout, as_json=as_json)

    common.call(work, database_url)
