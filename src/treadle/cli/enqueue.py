"""`treadle tasks enqueue`: put a task on a queue; and print the result of one."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, out
from treadle.errors import InvalidArgument, TaskFailed

if TYPE_CHECKING:
    from treadle.app import Treadle

Timeout = Annotated[
    float | None, typer.Option(metavar="S", help="Wait no longer than this; else for ever.")
]
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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
      treadle tasks enqueue invoice --tier high --deadline 2h
    """
    arguments = common.json_argument(spec, "spec")
    by = None if deadline is None else read_deadline(deadline)
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

    async def work(app: Treadle) -> None:
        if by is not None:
            at = by if isinstance(by, datetime) else await (await app.gateway()).now() + by
            options["deadline_at"] = at
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


def read_deadline(text: str) -> datetime | timedelta:
    """A moment with its zone, or a time from now: 90s, 45m, 2h, 1d."""
    if found := re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smhd])", text):
        return timedelta(**{UNITS[found[2]]: float(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidArgument(
            f"{text!r} is no deadline",
            hint="Say 45m, 2h or 1d, or a moment with its zone: 2027-01-31T17:00+01:00",
            argument="deadline",
        )
    return moment


async def print_result(
    app: Treadle, task_id: UUID, *, timeout: float | None, as_json: bool
) -> None:
    """Wait for a task and print what it returned."""
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
