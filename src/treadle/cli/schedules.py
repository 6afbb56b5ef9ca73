"""`treadle schedules`: tasks and DAGs that are enqueued at set times.

A schedule is shown in plain English, with its next times on two clocks and its last runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from treadle.cli import common, output
from treadle.cli.common import Name
from treadle.cli.nouns import Noun, add_create_and_update, add_delete, add_pause_and_resume
from treadle.cli.output import Column, Record
from treadle.cron import Cron, zone_named
from treadle.errors import InvalidArgument, MissingExtra, QueueFull

if TYPE_CHECKING:
    from uuid import UUID

    from treadle.app import Treadle
    from treadle.db.database import Database

SHOWN_TIMES = 5
Zone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="Time zone, such as Europe/Berlin; default: UTC."),
]
COLUMNS = [
    Column("schedule", "name"),
    Column("state", "state", output.state),
    Column("recurrence", "text"),
    Column("timezone", "timezone"),
    Column("enqueues", "what"),
    Column("next_run", "next_at", output.ago),
    Column("last_run", "last_at", output.ago, extra=True),
    Column("last_task", "last_task", output.short, extra=True),
    Column("last_status", "last_status"),
]
RUNS = [
    Column("scheduled", "nominal_at", lambda value: _minute(value)),
    Column("started", "fired_at", output.ago),
    Column("result", "status"),
    Column("status", "now", lambda value: output.state(value) if value else "-"),
    Column("task", "task_id", output.short),
    Column("dag", "dag_id", output.short, extra=True),
    Column("error", "error"),
]
TIMES = [
    Column("local_time", "local"),
    Column("utc_time", "utc"),
    Column("relative", "at", output.ago),
]
SYNCED = [Column("schedule", "name"), Column("verdict", "verdict")]

schedules = Noun(
    "schedules",
    """List schedules with their next and last runs; create, run, pause and delete them.

    \b
    Examples:
      treadle schedules
      treadle schedules create nightly "30 2 * * *" --timezone Europe/Berlin --type report
      treadle schedules show nightly
    """,
)


@schedules.verb("list")
def list_schedules() -> None:
    """List schedules in plain English with their next and last runs.

    \b
    Example:
      treadle schedules list --json
    """
    rows = common.call_db(lambda db: db.schedules.list())
    shown = [{**row, "text": explain(row["cron"])} for row in rows]
    output.show(shown, COLUMNS, empty="no schedules; create one: treadle schedules create --help")


@schedules.verb()
def show(
    name: Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=0, max=1000, help="Runs at most.")
    ] = 10,
) -> None:
    """Show a schedule with its next five times and its last runs.

    \b
    Example:
      treadle schedules show nightly
    """

    async def read(db: Database) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return await db.schedules.get(name), await db.schedules.runs(name, limit)

    found, runs = common.call_db(read)
    times = next_times(found)
    if common.options.json:
        text = explain(found["cron"])
        output.document({**found, "text": text, "next_times": times, "runs": runs})
        return
    output.print_record(dict(_facts(found)))
    if times:
        typer.echo()
        output.show(times, TIMES)
    typer.echo()
    output.show(runs, RUNS, empty=f"it has not run yet; run it now: treadle schedules run {name}")


def schedule_settings(
    cron: Annotated[
        str | None,
        typer.Argument(metavar="CRON", help="Five fields in quotes, or @daily and the like."),
    ] = None,
    timezone: Zone = None,
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Type of the task to enqueue.")
    ] = None,
    spec: Annotated[
        str | None, typer.Option(metavar="JSON", help="Arguments of the task: JSON, @file or -.")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="QUEUE", help="Queue of the task.")] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="Priority of the task: 0 first, 100 last.")
    ] = None,
    dag: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Create this DAG instead: a JSON or YAML file, or -."),
    ] = None,
    jitter: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Delay each run by up to this long.")
    ] = None,
    catch_up: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Missed runs: skip, one (default) or all.")
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY", help="While the last run is active: allow, skip or cancel_previous."
        ),
    ] = None,
    grace: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="Delay after which a run is missed; default: 60."),
    ] = None,
) -> dict[str, Any]:
    """The settings of a schedule that were given."""
    if cron is not None:
        Cron(cron, "UTC" if timezone is None else timezone)
    elif timezone is not None:
        zone_named(timezone)
    settings = common.named(
        {
            "cron": cron,
            "timezone": timezone,
            "jitter_s": jitter,
            "catch_up": catch_up,
            "overlap": overlap,
            "grace_s": grace,
        }
    )
    return settings | _template(type, spec, queue, priority, dag)


def _template(
    type: str | None, spec: str | None, queue: str | None, priority: int | None, dag: str | None
) -> dict[str, Any]:
    task = common.named({"queue": queue, "priority": priority})
    if spec is not None:
        task["spec"] = common.json_argument(spec, "--spec")
    if dag is not None:
        if type is not None or task:
            raise typer.BadParameter(
                "--dag cannot be combined with --type, --spec, --queue or --priority"
            )
        from treadle.cli.dags.plan_file import read_plan

        return {"dag": read_plan(dag)}
    if type is not None:
        return {"task": {"type": type, **task}}
    if task:
        raise typer.BadParameter("--spec, --queue and --priority need --type")
    return {}


async def _define(db: Database, name: str, settings: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    verdict = await db.schedules.define(name, settings)
    return verdict == "created", {**await db.schedules.get(name), "verdict": verdict}


def _print_defined(name: str, _: str, found: dict[str, Any]) -> None:
    output.print_done(f"schedule {name} is {found['verdict']}: {explain(found['cron'])}", **found)


add_create_and_update(
    schedules,
    "schedule",
    _define,
    schedule_settings,
    create="""Create a schedule.

    \b
    Examples:
      treadle schedules create nightly "30 2 * * *" --timezone Europe/Berlin --type report
      treadle schedules create crawl @hourly --type crawl --spec '{"depth": 2}' --overlap skip
      treadle schedules create weekly @weekly --dag weekly.json --jitter 600
    """,
    update="""Change the named settings of a schedule.

    \b
    Examples:
      treadle schedules update nightly "45 2 * * *"
      treadle schedules update nightly --catch-up skip
    """,
    done=_print_defined,
    get=lambda db, name: db.schedules.get(name),
)


@schedules.verb("run")
def run_schedule(name: Name) -> None:
    """Enqueue the task or the DAG of a schedule now, even while it is paused.

    \b
    Example:
      treadle schedules run nightly
    """

    async def run(db: Database) -> tuple[UUID | None, UUID | None, bool]:
        try:
            return await db.schedules.run(name)
        except QueueFull as error:
            await db.schedules.skip(name, str(error))
            raise

    task_id, dag_id, created = common.call_db(run)
    output.print_new(
        task_id or dag_id,
        "enqueued" if created else "exists already",
        task_id=task_id,
        dag_id=dag_id,
        created=created,
    )


@schedules.verb()
def sync(
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Application with schedules.")],
) -> None:
    """Store the schedules that the code of an application declares, as its workers do.

    \b
    Example:
      treadle schedules sync my_module:app
    """
    from treadle.cli.worker import load_app

    declaring = load_app(app)

    async def declare(used: Treadle) -> dict[str, str]:
        return await declaring.schedules.declare(used.db)

    verdicts = common.call(declare)
    rows = [{"name": name, "verdict": verdict} for name, verdict in verdicts.items()]
    output.show(rows, SYNCED, empty=f"{app} declares no schedules")


@schedules.verb(database=False)
def preview(
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields in quotes, or @daily.")],
    timezone: Zone = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="Times at most.")
    ] = SHOWN_TIMES,
) -> None:
    """Explain a cron expression and list its next times; needs no database.

    \b
    Example:
      treadle schedules preview "30 2 * * *" --timezone Europe/Berlin
    """
    calendar = Cron(cron, "UTC" if timezone is None else timezone)
    times = _times(calendar, calendar.next_times(datetime.now(tz=UTC), limit))
    text, zone = calendar.explain(), calendar.timezone
    if common.options.json:
        output.document({"text": text, "timezone": zone, "next_times": times})
        return
    typer.echo(f"{text}, {zone}")
    output.show(times, TIMES)


add_pause_and_resume(
    schedules,
    "schedule",
    lambda db: db.schedules,
    pause="Stop the runs of a schedule; tasks that it enqueued continue.",
    resume="Resume a paused schedule; its catch-up policy decides about missed runs.",
    example="nightly",
)
add_delete(
    schedules,
    "schedule",
    lambda db, name: db.schedules.remove(name),
    text="Delete a schedule; its tasks and the record of its runs stay.",
    example="nightly",
)


def explain(cron: str) -> str:
    """A cron expression in plain English; itself where it cannot be explained."""
    try:
        return Cron(cron).explain()
    except (InvalidArgument, MissingExtra):
        return cron


def next_times(schedule: Record) -> list[dict[str, Any]]:
    """The next times of a schedule, beginning with the run that is planned next."""
    if schedule["state"] == "stopped":
        return []
    calendar = Cron(schedule["cron"], schedule["timezone"])
    first: datetime | None = schedule["next_at"] if schedule["state"] == "active" else None
    if first is None:
        return _times(calendar, calendar.next_times(datetime.now(tz=UTC), SHOWN_TIMES))
    return _times(calendar, [first, *calendar.next_times(first, SHOWN_TIMES - 1)])


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
        reason = found["paused_reason"] or "no reason given"
        yield "paused", f"{output.moment(found['paused_at'])} by {found['paused_by']}: {reason}"
    yield "recurrence", f"{explain(found['cron'])}, {found['timezone']}"
    yield "cron", found["cron"]
    yield "enqueues", found["template"]
    yield "jitter", f"up to {found['jitter_s']} s" if found["jitter_s"] else "none"
    yield "catch_up", f"{found['catch_up']}, for runs over {found['grace_s']} s late"
    yield "overlap", found["overlap"]
    yield "last_run", found["last_at"]
    yield "last_status", found["last_status"]
    if found["last_error"]:
        yield "last_error", found["last_error"]
    if found["last_task"]:
        yield "last_task", found["last_queue_id"] or found["last_task"]
    if found["last_dag"]:
        yield "last_dag", found["last_dag"]
    where = "in code" if found["in_code"] else "on the command line or over HTTP"
    yield "defined", f"{where}, by {found['created_by']}"
