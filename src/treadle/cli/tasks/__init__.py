"""`treadle tasks`: list, show, enqueue, wait for, cancel, retry, prioritise and fork tasks."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output, retention
from treadle.cli.nouns import Noun
from treadle.cli.options import field_options, with_options
from treadle.cli.output import Column
from treadle.cli.tasks import bulk, view
from treadle.cli.waits import with_times
from treadle.errors import InvalidArgument, TaskFailed, TreadleError
from treadle.fields import EnqueueOptions, fields_of

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database

# After this long, waiting for a result says why the task is not running.
EXPLAIN_AFTER_S = 3.0
ACTIVE_OR_ENDED = {"claimed", "running", "validating", "completed", "cancelled", "dead_lettered"}
COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("priority", "priority", right=True, extra=True),
    Column("attempt", "tries", right=True, extra=True),
    Column("agent", "agent_id", extra=True),
    Column("created", "created_at", output.ago),
    Column("progress", "reached"),
    Column("about", "about"),
]
REASONS = [Column("reason", "reason"), Column("until", "until"), Column("sentence", "sentence")]
Timeout = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Longest wait; default: no limit.")
]

tasks = Noun(
    "tasks",
    """List, show, enqueue, wait for, cancel, retry, prioritise and fork tasks.

    \b
    Example:
      treadle tasks list --status running
    """,
)


@tasks.verb("list")
@with_options(filters=bulk.task_filters)
def list_tasks(
    filters: dict[str, Any],
    limit: common.Limit = 50,
    ids_only: common.IdsOnly = False,
) -> None:
    """List tasks, newest first.

    \b
    Examples:
      treadle tasks list --status running --queue mail
      treadle tasks list --status retrying -q | xargs treadle tasks cancel
    """
    rows = common.call_db(lambda db: db.tasks.list(filters, limit))
    if common.options.json:
        output.document({"items": rows})
        return
    if ids_only:
        output.print_ids(rows)
        return
    for row in rows:
        row["tries"] = f"{row['attempt']}/{row['max_attempts']}"
        row["reached"] = view.progress_text(row["progress"])
        row["about"] = output.last_line(row["failure_reason"]) or row["title"]
    if output.console().is_terminal and not any(row["reached"] for row in rows):
        columns = [column for column in COLUMNS if column.key != "reached"]
    else:
        columns = COLUMNS
    output.show(rows, columns, empty="no task matches; enqueue one: treadle tasks enqueue --help")


@tasks.verb()
def show(task_id: common.TaskId) -> None:
    """Show a task with its dependencies, steps, waits and attempts, and why it waits.

    \b
    Example:
      treadle tasks show 9f3a21c4
    """

    async def read(db: Database) -> tuple[dict[str, Any], dict[str, list[Any]], list[Any]]:
        async with retention.hint_if_archived(db, task_id):
            found = await db.tasks.find(task_id)
            task = await db.tasks.get(found)
        parts = {
            "dependencies": await db.tasks.dependencies(task),
            "subtasks": await db.tasks.subtasks(found),
            "steps": await db.steps.list(found),
            "waits": await db.waits.list(ended=True, task_id=found, limit=1000),
            "artifacts": (await db.artifacts.list(task_id=found, limit=1000))[::-1],
            "attempts": await db.tasks.history(found),
        }
        return task, parts, await db.tasks.why(found)

    task, parts, reasons = common.call_db(read)
    parts["waits"] = [with_times(each) for each in reversed(parts["waits"])]
    if output.console().is_terminal and not common.options.json:
        view.print_task(task, parts["attempts"], reasons, parts)
        return
    why = "; ".join(each["sentence"] for each in reasons)
    output.print_record({**task, "why": why, "reasons": reasons, **parts})


@tasks.verb("why")
def explain(task_id: common.TaskId) -> None:
    """List every reason why a task is not running, the most important first.

    \b
    Example:
      treadle tasks why 9f3a21c4
    """

    async def read(db: Database) -> tuple[UUID, list[dict[str, Any]]]:
        found = await db.tasks.find(task_id)
        return found, await db.tasks.why(found)

    found, reasons = common.call_db(read)
    if common.options.json:
        output.document({"id": found, "reasons": reasons})
    elif output.console().is_terminal:
        for each in reasons:
            view.print_reason(each)
    else:
        output.show(reasons, REASONS)


# --timeout is how long to wait for the result.
OPTIONS = [
    field
    for field in fields_of(EnqueueOptions)
    if field.has("option") and field.name != "timeout_s"
]
OTHERS = {field.name for field in fields_of(EnqueueOptions)} - {field.name for field in OPTIONS}


@tasks.verb()
@with_options(options=field_options(OPTIONS))
def enqueue(
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type.")],
    spec: Annotated[
        str, typer.Argument(metavar="JSON", help="Its arguments: JSON, @file, or - for stdin.")
    ] = "{}",
    options: Any = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other field, such as tags or timeout_s; repeatable.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its result and print it.")] = False,
    timeout: Timeout = None,
) -> None:
    """Enqueue a task and print its id.

    \b
    Examples:
      treadle tasks enqueue summarise '{"url": "https://example.org"}' --wait
      treadle tasks enqueue report @report.json --delay 3600 --key report-today
      treadle tasks enqueue invoice --tier high --deadline 2h
      treadle tasks enqueue review --set assigned_agent=coder-1 --set 'tags=["urgent"]'
      treadle tasks enqueue publish --after 9f3a21c4 --input page=task:9f3a21c4:output
    """
    arguments = common.json_argument(spec, "spec")
    options |= read_settings(also or [], sorted(OTHERS))

    async def work(app: Treadle) -> None:
        for name in ("run_at", "deadline_at"):
            if isinstance(options.get(name), timedelta):
                options[name] += await app.db.calls.now()
        await find_references(app.db, options)
        handle = await app.enqueue(type, arguments, **options)
        text = "enqueued" if handle.created else "exists already"
        if wait:
            common.note(f"{handle.id} {text}")
            await print_result(app, handle.id, timeout)
        else:
            output.print_new(handle.id, text, id=handle.id, created=handle.created)

    common.call(work)


async def find_references(db: Database, options: dict[str, Any]) -> None:
    """Replace the ends of ids with ids in the options that refer to other tasks."""
    if "after" in options:
        options["after"] = [await db.tasks.find(each) for each in options["after"]]
    for name, reference in options.get("inputs", {}).items():
        kind, _, rest = reference.partition(":")
        task, _, part = rest.partition(":")
        if kind == "task" and task:
            options["inputs"][name] = f"task:{await db.tasks.find(task)}:{part}"


def read_settings(pairs: list[str], known: list[str]) -> dict[str, Any]:
    """The options of a task that are given with --set."""
    found = common.assignments(pairs, "source=import")
    for name in found:
        if name not in known:
            raise InvalidArgument(
                f"--set cannot set {name!r}",
                hint=f"Use one of {', '.join(known)}",
                argument="set",
            )
    return found


@tasks.verb()
def wait(task_id: common.TaskId, timeout: Timeout = None) -> None:
    """Wait until a task has ended and print its result.

    \b
    Example:
      treadle tasks wait 9f3a21c4 --timeout 60

    Exit code 7: the task has not ended in time. 8: it was dead-lettered or cancelled.
    """

    async def work(app: Treadle) -> None:
        await print_result(app, await app.db.tasks.find(task_id), timeout)

    common.call(work)


async def print_result(app: Treadle, task_id: UUID, timeout: float | None) -> None:
    """Wait for a task and print what it returned."""
    try:
        value = await _wait_for_result(app, task_id, timeout)
    except TaskFailed as error:
        if common.options.json:
            detail = {name: error.detail.get(name) for name in ("status", "failure_class")}
            output.document({"id": task_id, "output": None, **detail, "error": str(error)})
        raise
    if common.options.json:
        output.document({"id": task_id, "status": "completed", "output": value})
    else:
        typer.echo(output.flat(value) if not isinstance(value, str) else common.printable(value))


async def _wait_for_result(app: Treadle, task_id: UUID, timeout: float | None) -> Any:
    """The result of a task; if it does not run soon, print once why."""
    import anyio

    from treadle.producer.handle import Handle

    async def explain_delay() -> None:
        await anyio.sleep(EXPLAIN_AFTER_S)
        # An error here also ends the wait for the result, which reports it.
        with suppress(TreadleError):
            for each in await app.db.tasks.why(task_id):
                if each["reason"] not in ACTIVE_OR_ENDED:
                    common.note(each["sentence"])

    failed: TreadleError | None = None
    value: Any = None
    async with anyio.create_task_group() as group:
        group.start_soon(explain_delay)
        try:
            value = await Handle(app, task_id).result(timeout=timeout)
        except TreadleError as error:
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return value


@tasks.verb()
def fork(
    task_id: common.TaskId,
    from_step: Annotated[
        str, typer.Option("--from", metavar="STEP", help="First step to run again.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change one argument; repeatable."),
    ] = None,
) -> None:
    """Create a task that keeps the steps before one and runs the rest again; print its id.

    \b
    Examples:
      treadle tasks fork 9f3a21c4 --from draft
      treadle tasks fork 9f3a21c4 --from draft --set tone=dry --set 'words=300'

    A value is JSON, or text if it is not valid JSON. Exit code 3: there is no such task or step.
    """
    spec = common.assignments(settings or [], "tone=dry")
    changes = {"spec": spec} if spec else {}

    async def work(db: Database) -> tuple[UUID, UUID]:
        found = await db.tasks.find(task_id)
        return found, await db.tasks.fork(found, from_step, changes, None)

    found, forked = common.call_db(work)
    output.print_new(forked, f"forked from {found}", id=forked, forked_from=found)


tasks.verb()(bulk.cancel)
tasks.verb()(bulk.retry)
tasks.verb()(bulk.prioritise)
