"""`treadle tasks`: list, show, enqueue, cancel, retry, fork, wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, out, taskview
from treadle.cli.decide import resolve
from treadle.cli.fork import fork
from treadle.cli.out import Column
from treadle.cli.waits import with_times
from treadle.errors import InvalidArgument, TaskFailed

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.options import EnqueueOptions

tasks = common.group(
    """List, show, enqueue, cancel, retry, fork and await tasks.

    \b
    Example:
      treadle tasks list --status running
    """
)

tasks.command()(fork)

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
VERDICTS = [Column("id", "id"), Column("verdict", "verdict")]
Timeout = Annotated[
    float | None, typer.Option(metavar="S", help="Wait no longer than this; else for ever.")
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
        found = await reader.find_task(task_id.lstrip("…."))
        task = await reader.task(found)
        parts = {
            "dependencies": await reader.dependencies(task),
            "subtasks": await reader.subtasks(found),
            "steps": await reader.steps(found),
            "waits": await reader.waits(ended=True, task_id=found, limit=1000),
            "attempts": await reader.history(found),
        }
        return task, parts, await reader.stuck()

    task, parts, stuck = common.call(work, database_url)
    parts["waits"] = [with_times(each) for each in reversed(parts["waits"])]
    reason = taskview.why(task, stuck, parts["dependencies"], parts["waits"])
    if as_json or not out.console().is_terminal:
        whole = {**task, "why": reason, **parts}
        if as_json:
            out.document(whole)
            return
        for name, value in whole.items():
            out.separated([name, value])
        return
    taskview.print_task(task, parts["attempts"], reason, parts)


@tasks.command()
def enqueue(
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type.")],
    spec: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its arguments: JSON, @file, or - for stdin.")
    ] = "{}",
    queue: Annotated[str, typer.Option(help="Where it waits.")] = "default",
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    delay: Annotated[float | None, typer.Option(metavar="S", help="Not before so long.")] = None,
    key: Annotated[
        str | None, typer.Option(help="A second task with this key is the first one.")
    ] = None,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Make the key from type and arguments.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="For people.")] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="Before it gives up.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its result and print it.")] = False,
    timeout: Timeout = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Put a task on a queue and print its id.

    \b
    Examples:
      treadle tasks enqueue summarise '{"url": "https://example.org"}' --wait
      treadle tasks enqueue report @report.json --delay 3600 --key report-today
    """
    arguments = common.json_argument(spec, "spec")
    options: EnqueueOptions = {"queue": queue}
    if priority is not None:
        options["priority"] = priority
    if delay is not None:
        options["delay"] = delay
    if key is not None:
        options["key"] = key
    if dedupe:
        options["dedupe"] = True
    if title is not None:
        options["title"] = title
    if max_attempts is not None:
        options["max_attempts"] = max_attempts

    async def work(app: Treadle) -> None:
        handle = await app.enqueue(type, arguments, **options)
        word = "enqueued" if handle.created else "was there already"
        if wait:
            common.note(f"{handle.id} {word}")
            await _await(app, handle.id, timeout=timeout, as_json=as_json)
        elif as_json:
            out.document({"id": handle.id, "created": handle.created})
        elif out.console().is_terminal:
            out.console().print(out.plain(f"{handle.id}  {word}"))
        else:
            typer.echo(handle.id)

    common.call(work, database_url)


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
        await _await(app, found, timeout=timeout, as_json=as_json)

    common.call(work, database_url)


@tasks.command()
def cancel(
    task_ids: common.TaskIds,
    reason: Annotated[str | None, typer.Option(help="Why; it is kept.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Cancel tasks and those that depend on them; running handlers are told at once.

    \b
    Example:
      treadle tasks cancel 9f3a21c4 --reason "not needed any more"

    Exit code 3: no such task. 4: it had ended before.
    """

    async def work(app: Treadle) -> dict[UUID, str]:
        reader, gateway = await app.reader(), await app.gateway()
        found = [await reader.find_task(each.lstrip("….")) for each in task_ids]
        return await gateway.cancel_tasks(found, reason)

    verdicts = common.call(work, database_url)
    fell = [each for each, verdict in verdicts.items() if verdict == "cascaded"]
    rows = [
        {"id": each, "verdict": verdict}
        for each, verdict in verdicts.items()
        if verdict != "cascaded" or as_json or not out.console().is_terminal
    ]
    out.show(rows, VERDICTS, as_json=as_json)
    if fell:
        word = "depends" if len(fell) == 1 else "depend"
        common.note(f"and {len(fell)} that {word} on {'it' if len(task_ids) == 1 else 'them'}")
    if "unknown" in verdicts.values():
        common.note("error: there is no such task\nhint: List them: treadle tasks list")
        raise typer.Exit(3)
    if "ended" in verdicts.values():
        common.note("error: it ended before it could be cancelled")
        raise typer.Exit(4)


@tasks.command()
def retry(
    task_ids: common.TaskIds,
    note: Annotated[str | None, typer.Option(help="Why; it is kept.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run tasks again now: those that wait for a retry, gave up or were cancelled.

    \b
    Example:
      treadle tasks retry 9f3a21c4
    """
    resolve(task_ids, "retry", note=note, as_json=as_json, database_url=database_url)


async def _await(app: Treadle, task_id: UUID, *, timeout: float | None, as_json: bool) -> None:
    from treadle.handles import Handle

    try:
        output = await Handle(app, task_id).result(timeout=timeout)
    except TaskFailed as error:
        if as_json:
            known = {name: error.detail.get(name) for name in ("status", "failure_class")}
            out.document({"id": task_id, "output": None, **known, "error": str(error)})
        raise
    if as_json:
        out.document({"id": task_id, "status": "completed", "output": output})
    else:
        typer.echo(out.flat(output) if not isinstance(output, str) else common.printable(output))
