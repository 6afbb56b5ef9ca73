"""`treadle tasks enqueue`: put a task on a queue; and print the result of one."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import ages, common, out
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
        name: ages.moment(text, name)
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
                moment += await (await app.gateway()).now()
            options[name] = moment
        handle = await app.enqueue(type, arguments, **options)
        word = "enqueued" if handle.created else "was there already"
        if wait:
            common.note(f"{handle.id} {word}")
            await print_result(app, handle.id, timeout=timeout, as_json=as_json)
        elif as_json:
            out.document({"id": handle.id, "created": handle.created})
        elif out.console().is_terminal:
            out.console().print(out.plain(f"{handle.id}  {word}"))
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
            for each in await (await app.reader()).why(task_id):
                if each["reason"] not in UNDER_WAY:
                    common.note(each["sentence"])

    failed: TreadleError | None = None
    output: Any = None
    async with anyio.create_task_group() as group:
        group.start_soon(explain)
        try:
            output = await Handle(app, task_id).result(timeout=timeout)
        except TreadleError as error:
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return output


async def print_result(
    app: Treadle, task_id: UUID, *, timeout: float | None, as_json: bool
) -> None:
    """Wait for a task and print what it returned."""
    try:
        output = await _awaited(app, task_id, timeout)
    except TaskFailed as error:
        if as_json:
            known = {name: error.detail.get(name) for name in ("status", "failure_class")}
            out.document({"id": task_id, "output": None, **known, "error": str(error)})
        raise
    if as_json:
        out.document({"id": task_id, "status": "completed", "output": output})
    else:
        typer.echo(out.flat(output) if not isinstance(output, str) else common.printable(output))
