"""`treadle schedules`: work that starts by the calendar.

A schedule is shown in plain English, with its next times on two clocks and its last runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from treadle.cli import common, output
from treadle.cli.output import Column, Record
from treadle.cron import Cron
from treadle.errors import InvalidArgument, MissingExtra, QueueFull

if TYPE_CHECKING:
    from uuid import UUID

    from treadle.app import Treadle

SHOWN = 5
RUNS = [
    Column("nominal", "nominal_at", lambda value: _minute(value)),
    Column("fired", "fired_at", output.ago),
    Column("status", "status"),
    Column("now", "now", lambda value: output.state(value) if value else "-"),
    Column("task", "task_id", output.short),
    Column("dag", "dag_id", output.short, extra=True),
    Column("error", "error"),
]
TIMES = [
    Column("local", "local"),
    Column("utc", "utc"),
    Column("when", "at", output.ago),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
Zone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Time zone, as Europe/Berlin; else UTC.")
]

COLUMNS = [
    Column("schedule", "name"),
    Column("state", "state", output.state),
    Column("when", "text"),
    Column("zone", "timezone"),
    Column("makes", "what"),
    Column("next", "next_at", output.ago),
    Column("last", "last_at", output.ago, extra=True),
    Column("last_task", "last_task", output.short, extra=True),
    Column("last_status", "last_status"),
]
SYNCED = [Column("schedule", "name"), Column("verdict", "verdict")]


def words(cron: str) -> str:
    """What a line says; the line itself where it cannot be read."""
    try:
        return Cron(cron).explain()
    except (InvalidArgument, MissingExtra):
        return cron


def print_preview(cron: str, timezone: str, count: int, *, as_json: bool) -> None:
    """What a line means and when it comes."""
    calendar = Cron(cron, timezone)
    times = _times(calendar, calendar.next_times(datetime.now(tz=UTC), count))
    if as_json:
        output.document({"text": calendar.explain(), "timezone": timezone, "next_times": times})
        return
    typer.echo(f"{calendar.explain()}, {timezone}")
    output.show(times, TIMES, as_json=False)


def print_schedule(found: Record, runs: Sequence[Record], *, as_json: bool) -> None:
    """All about one schedule."""
    times = next_times(found)
    if as_json:
        output.document(
            {**found, "text": words(found["cron"]), "next_times": times, "runs": list(runs)}
        )
        return
    terminal = output.console().is_terminal
    for name, value in _facts(found):
        if terminal:
            typer.echo(f"{name:<12}{output.line(value)}")
        else:
            output.separated([name, value])
    if times:
        typer.echo()
        output.show(times, TIMES, as_json=False)
    typer.echo()
    output.show(runs, RUNS, as_json=False, empty="it has not run yet")


def next_times(found: Record) -> list[dict[str, Any]]:
    """Its next five times; what it is to make next is the first of them."""
    if found["state"] == "stopped":
        return []
    calendar = Cron(found["cron"], found["timezone"])
    first: datetime | None = found["next_at"] if found["state"] == "active" else None
    if first is None:
        return _times(calendar, calendar.next_times(datetime.now(tz=UTC), SHOWN))
    return _times(calendar, [first, *calendar.next_times(first, SHOWN - 1)])


def _times(calendar: Cron, times: Sequence[datetime]) -> list[dict[str, Any]]:
    zone = ZoneInfo(calendar.timezone)
    return [
        {
            "local": f"{time.astimezone(zone):%Y-%m-%d %H:%M %Z}",
            "utc": _minute(time),
            "at": time,
        }
        for time in times
    ]


def _minute(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def _facts(found: Record) -> Iterator[tuple[str, Any]]:
    yield "schedule", found["name"]
    yield "state", found["state"]
    if found["paused_at"] is not None:
        why = found["paused_reason"] or "no reason given"
        yield "paused", f"{output.moment(found['paused_at'])} by {found['paused_by']}: {why}"
    yield "when", f"{words(found['cron'])}, {found['timezone']}"
    yield "cron", found["cron"]
    yield "makes", found["template"]
    yield "jitter", f"up to {found['jitter_s']} s" if found["jitter_s"] else "none"
    yield "catch-up", f"{found['catch_up']}, of what is {found['grace_s']} s late"
    yield "overlap", found["overlap"]
    yield "last", found["last_at"]
    yield "last status", found["last_status"]
    if found["last_error"]:
        yield "last error", found["last_error"]
    if found["last_task"]:
        yield "last task", found["last_queue_id"] or found["last_task"]
    if found["last_dag"]:
        yield "last DAG", found["last_dag"]
    yield "defined", f"{'in code' if found['in_code'] else 'by hand'}, by {found['created_by']}"


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.schedules.list()

    rows = common.call(work, database_url)
    shown = [{**row, "text": words(row["cron"])} for row in rows]
    output.show(shown, COLUMNS, as_json=as_json, empty="there is no schedule")


schedules = common.group(
    """See what starts when and how it went; define, run, pause, resume, remove schedules.

    \b
    Examples:
      treadle schedules
      treadle schedules define nightly "30 2 * * *" --tz Europe/Berlin --type report
      treadle schedules show nightly
    """,
    alone=_list,
)


@schedules.command("list")
def list_schedules(
    as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """List the schedules: in words, the next time, and what became of the last.

    \b
    Example:
      treadle schedules list --json
    """
    _list(as_json, database_url)


@schedules.command()
def show(
    name: Name,
    limit: Annotated[int, typer.Option(min=0, max=1000, help="So many of its last runs.")] = 10,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a schedule: in plain English, its next five times and its last runs.

    \b
    Example:
      treadle schedules show nightly
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        db = app.db
        return await db.schedules.get(name), await db.schedules.runs(name, limit)

    found, runs = common.call(work, database_url)
    print_schedule(found, runs, as_json=as_json)


@schedules.command()
def define(
    name: Name,
    cron: Annotated[
        str | None,
        typer.Argument(metavar="[CRON]", help="Five fields in quotes, or @daily and the like."),
    ] = None,
    tz: Zone = None,
    type: Annotated[str | None, typer.Option(help="The type of the task it makes.")] = None,
    spec: Annotated[
        str | None, typer.Option(metavar="JSON", help="Its arguments: JSON, @file, or -.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Where the task waits.")] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    dag: Annotated[
        str | None, typer.Option(metavar="FILE", help="Make this DAG instead: JSON or YAML, or -.")
    ] = None,
    jitter: Annotated[
        int | None, typer.Option(metavar="S", help="Start up to so many seconds later.")
    ] = None,
    catch_up: Annotated[
        str | None, typer.Option(help="What was missed: skip, one (the default) or all.")
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(help="While the last still runs: allow, skip or cancel_previous."),
    ] = None,
    grace: Annotated[
        int | None, typer.Option(metavar="S", help="So much later is not missed; else 60.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a schedule, or change one; what is not named stays as it is.

    \b
    Examples:
      treadle schedules define nightly "30 2 * * *" --tz Europe/Berlin --type report
      treadle schedules define crawl @hourly --type crawl --spec '{"depth": 2}' --overlap skip
      treadle schedules define weekly @weekly --dag weekly.json --jitter 600
      treadle schedules define nightly --catch-up skip
    """
    from treadle.cron import Cron, zone_named

    if cron is not None:
        Cron(cron, "UTC" if tz is None else tz)
    elif tz is not None:
        zone_named(tz)
    settings: dict[str, Any] = {
        "cron": cron, "timezone": tz, "jitter_s": jitter, "catch_up": catch_up,
        "overlap": overlap, "grace_s": grace,
    }  # fmt: skip
    given = {key: value for key, value in settings.items() if value is not None}
    given |= _template(type, spec, queue, priority, dag)

    async def work(app: Treadle) -> tuple[str, dict[str, Any]]:
        verdict = await app.db.schedules.define(name, given)
        return verdict, await app.db.schedules.get(name)

    verdict, found = common.call(work, database_url)
    text = f"schedule {name} is {verdict}: {words(found['cron'])}"
    output.print_done(text, as_json, **found, verdict=verdict)


def _template(
    type: str | None, spec: str | None, queue: str | None, priority: int | None, dag: str | None
) -> dict[str, Any]:
    parts: dict[str, Any] = {"queue": queue, "priority": priority}
    named = {key: value for key, value in parts.items() if value is not None}
    if spec is not None:
        named["spec"] = common.json_argument(spec, "--spec")
    if dag is not None:
        if type is not None or named:
            raise typer.BadParameter("--dag goes with no --type, --spec, --queue or --priority")
        from treadle.cli.dags.plan_file import read_plan

        return {"dag": read_plan(dag)}
    if type is not None:
        return {"task": {"type": type, **named}}
    if named:
        raise typer.BadParameter("--spec, --queue and --priority need --type")
    return {}


@schedules.command("run")
def run_schedule(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Make its task or DAG now, besides its times; also while it is paused.

    \b
    Example:
      treadle schedules run nightly
    """

    async def work(app: Treadle) -> tuple[UUID | None, UUID | None, bool]:
        db = app.db
        try:
            return await db.schedules.run(name)
        except QueueFull as error:
            await db.schedules.skip(name, str(error))
            raise

    task_id, dag_id, created = common.call(work, database_url)
    if as_json:
        output.document({"task_id": task_id, "dag_id": dag_id, "created": created})
        return
    typer.echo(str(task_id or dag_id))
    if not created:
        common.note("there was one with its key already")


@schedules.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let a schedule make nothing until it is resumed; what it made runs on.

    \b
    Example:
      treadle schedules pause nightly --reason "the source is down"
    """
    common.call_db(lambda db: db.schedules.pause(name, reason), database_url)
    output.print_done(f"schedule {name} is paused", as_json, name=name, status="paused")


@schedules.command()
def resume(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let a paused schedule go on; its catch-up policy says what is made up for.

    \b
    Example:
      treadle schedules resume nightly
    """
    was_paused = common.call_db(lambda db: db.schedules.resume(name), database_url)
    text = f"schedule {name} {'is active' if was_paused else 'was not paused'}"
    output.print_done(text, as_json, name=name, status="active", changed=was_paused)


@schedules.command()
def remove(
    name: Name,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Remove a schedule; the tasks that it made stay, and the record of its runs.

    \b
    Example:
      treadle schedules remove nightly --yes
    """
    common.confirm(f"remove the schedule {name}", yes=yes)
    common.call_db(lambda db: db.schedules.remove(name), database_url)
    output.print_done(f"schedule {name} is removed", as_json, name=name, status="removed")


@schedules.command()
def sync(
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Your application.")],
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make the schedules in the code of an application known, as its workers do.

    \b
    Example:
      treadle schedules sync my_module:app
    """
    from treadle.cli.loader import load_app

    declaring = load_app(app)

    async def work(used: Treadle) -> dict[str, str]:
        return await declaring.schedules.declare(used.db)

    verdicts = common.call(work, database_url)
    rows = [{"name": name, "verdict": verdict} for name, verdict in verdicts.items()]
    output.show(rows, SYNCED, as_json=as_json, empty=f"{app} has no schedules")


@schedules.command()
def preview(
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields in quotes, or @daily.")],
    tz: Zone = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="So many times.")] = 5,
    as_json: common.JsonFlag = False,
) -> None:
    """Say what a cron line means and when it comes next; needs no database.

    \b
    Example:
      treadle schedules preview "30 2 * * *" --tz Europe/Berlin
    """
    print_preview(cron, "UTC" if tz is None else tz, count, as_json=as_json)
