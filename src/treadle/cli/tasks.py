"""`treadle tasks`: list, show, enqueue, cancel, retry, fork, wait."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output, retention, task_actions, task_view, times
from treadle.cli.output import Column
from treadle.cli.waits import with_times
from treadle.errors import InvalidArgument, TaskFailed, TreadleError
from treadle.fields import EnqueueOptions

if TYPE_CHECKING:
    from treadle.app import Treadle

# Who waits for a result is told after this long why there is none, unless it is being made.
SILENT_S = 3.0
UNDER_WAY = {"claimed", "running", "validating", "completed", "cancelled", "dead_lettered"}
Timeout = Annotated[
    float | None, typer.Option(metavar="S", help="Wait no longer than this; else for ever.")
]


def enqueue(
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type.")],
    spec: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its arguments: JSON, @file, or - for stdin.")
    ] = "{}",
    queue: Annotated[str, typer.Option(help="Where it waits.")] = "default",
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    urgency: Annotated[
        int | None, typer.Option(metavar="N", help="Instead: 10 is now, 1 no hurry.")
    ] = None,
    tier: Annotated[
        str | None, typer.Option(help="Instead: critical, high, normal, low or background.")
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Wanted by: 45m, 2h, 1d, or a moment with its zone."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Whose work it is.")] = None,
    max_cost_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="What it may cost.")
    ] = None,
    gate: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="A gate before it; repeatable.")
    ] = None,
    concurrency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Tasks of one key take turns.")
    ] = None,
    concurrency_limit: Annotated[
        int | None, typer.Option(metavar="N", help="So many of its key at once; else one.")
    ] = None,
    delay: Annotated[float | None, typer.Option(metavar="S", help="Not before so long.")] = None,
    run_at: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Instead: 45m, 2h, 1d, or a moment with its zone."),
    ] = None,
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
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Anything else: tags, assigned_agent, validation, models, retry; repeatable.",
        ),
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
      treadle tasks enqueue invoice --tier high --deadline 2h
      treadle tasks enqueue review --set assigned_agent=coder-1 --set 'tags=["urgent"]'
    """
    arguments = common.json_argument(spec, "spec")
    moments = {
        name: times.moment(text, name)
        for name, text in (("run_at", run_at), ("deadline_at", deadline))
        if text is not None
    }
    # What is empty is left out on the way.
    options: Any = {
        "queue": queue,
        "priority": priority,
        "urgency": urgency,
        "tier": tier,
        "project": project,
        "max_cost_usd": max_cost_usd,
        "gates": gate or None,
        "concurrency_key": concurrency_key,
        "concurrency_limit": concurrency_limit,
        "delay": delay,
        "key": key,
        "dedupe": dedupe or None,
        "title": title,
        "max_attempts": max_attempts,
    }
    rest = sorted(
        EnqueueOptions.__annotations__.keys() - {*options, "keys", "run_at", "deadline_at"}
    )
    options |= read_settings(also or [], rest)

    async def work(app: Treadle) -> None:
        for name, moment in moments.items():
            if isinstance(moment, timedelta):
                moment += await app.db.calls.now()
            options[name] = moment
        handle = await app.enqueue(type, arguments, **options)
        word = "enqueued" if handle.created else "was there already"
        if wait:
            common.note(f"{handle.id} {word}")
            await print_result(app, handle.id, timeout=timeout, as_json=as_json)
        elif as_json:
            output.document({"id": handle.id, "created": handle.created})
        elif output.console().is_terminal:
            output.console().print(output.plain(f"{handle.id}  {word}"))
        else:
            typer.echo(handle.id)

    common.call(work, database_url)


def read_settings(pairs: list[str], known: list[str]) -> dict[str, Any]:
    """Options of a task that have none of their own here; a value that is no JSON is a text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if name not in known or not equals:
            raise InvalidArgument(
                f"--set {pair} says nothing about a task",
                hint=f"Say NAME=VALUE with one of {', '.join(known)}",
                argument="set",
            )
        if name in found:
            raise InvalidArgument(
                f"--set {name} is there twice", hint="Say it once.", argument="set"
            )
        found[name] = common.json_or_text(text)
    return found


async def _awaited(app: Treadle, task_id: UUID, timeout: float | None) -> Any:
    """What a task returned; while it does not run, why not is said once."""
    import anyio

    from treadle.producer.handle import Handle

    async def explain() -> None:
        await anyio.sleep(SILENT_S)
        # What goes wrong here is told by the waiting itself.
        with suppress(TreadleError):
            for each in await app.db.tasks.why(task_id):
                if each["reason"] not in UNDER_WAY:
                    common.note(each["sentence"])

    failed: TreadleError | None = None
    value: Any = None
    async with anyio.create_task_group() as group:
        group.start_soon(explain)
        try:
            value = await Handle(app, task_id).result(timeout=timeout)
        except TreadleError as error:
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return value


async def print_result(
    app: Treadle, task_id: UUID, *, timeout: float | None, as_json: bool
) -> None:
    """Wait for a task and print what it returned."""
    try:
        value = await _awaited(app, task_id, timeout)
    except TaskFailed as error:
        if as_json:
            known = {name: error.detail.get(name) for name in ("status", "failure_class")}
            output.document({"id": task_id, "output": None, **known, "error": str(error)})
        raise
    if as_json:
        output.document({"id": task_id, "status": "completed", "output": value})
    else:
        typer.echo(output.flat(value) if not isinstance(value, str) else common.printable(value))


def fork(
    task_id: common.TaskId,
    from_step: Annotated[
        str, typer.Option("--from", metavar="STEP", help="The first step to do again.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument to change; may be repeated."),
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a new task that keeps the steps before one, and print its id.

    \b
    Examples:
      treadle tasks fork 9f3a21c4 --from draft
      treadle tasks fork 9f3a21c4 --from draft --set tone=dry --set 'words=300'

    A value is JSON, or text when it is not. Exit code 3: no such task, or no such step.
    """
    changes = _changes(settings or [])

    async def work(app: Treadle) -> tuple[UUID, UUID]:
        found = await app.db.tasks.find(task_id.lstrip("…."))
        return found, await app.db.tasks.fork(found, from_step, changes, None)

    found, made = common.call(work, database_url)
    if as_json:
        output.document({"id": made, "forked_from": found})
    elif output.console().is_terminal:
        output.console().print(output.plain(f"{made}  forked from {found}"))
    else:
        typer.echo(made)


def _changes(settings: Sequence[str]) -> dict[str, Any]:
    """The changes that `key=value` stand for."""
    spec: dict[str, Any] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not key or not equals:
            raise InvalidArgument(
                f"{each!r} is not KEY=VALUE", hint="For example: --set tone=dry", argument="set"
            )
        spec[key] = common.json_or_text(value)
    return {"spec": spec} if spec else {}


tasks = common.group(
    """List, show, enqueue, cancel, retry, fork and await tasks.

    \b
    Example:
      treadle tasks list --status running
    """
)

tasks.command()(fork)
tasks.command()(enqueue)
tasks.command()(task_actions.cancel)
tasks.command()(task_actions.retry)

COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("priority", "priority", right=True, extra=True),
    Column("attempt", "tries", right=True, extra=True),
    Column("agent", "agent_id", extra=True),
    Column("created", "created_at", output.ago),
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
    if status is not None and status not in output.STATES:
        raise InvalidArgument(
            f"there is no state {status!r}", hint=common.did_you_mean(status, list(output.STATES))
        )

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.tasks.list(
            status=status, queue=queue, type=type, agent=agent, limit=limit
        )

    rows = common.call(work, database_url)
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["id"])
        return
    if not as_json:
        for row in rows:
            row["tries"] = f"{row['attempt']}/{row['max_attempts']}"
            row["about"] = task_view.last_line(row["failure_reason"]) or row["title"]
    output.show(rows, COLUMNS, as_json=as_json, empty="no task matches")


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
        db = app.db
        wanted = task_id.lstrip("….")
        async with retention.hint_if_archived(db, wanted):
            found = await db.tasks.find(wanted)
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

    task, parts, reasons = common.call(work, database_url)
    parts["waits"] = [with_times(each) for each in reversed(parts["waits"])]
    if as_json or not output.console().is_terminal:
        said = "; ".join(each["sentence"] for each in reasons)
        whole = {**task, "why": said, "reasons": reasons, **parts}
        if as_json:
            output.document(whole)
            return
        for name, value in whole.items():
            output.separated([name, value])
        return
    task_view.print_task(task, parts["attempts"], reasons, parts)


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
        found = await app.db.tasks.find(task_id.lstrip("…."))
        await print_result(app, found, timeout=timeout, as_json=as_json)

    common.call(work, database_url)
