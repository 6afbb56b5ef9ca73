"""Schedules in code: work that starts by the calendar.

app.schedule("nightly-report", "30 2 * * *", report.call(kind="daily"), tz="Europe/Berlin")

Workers of the application make them known when they start, and so does `treadle schedules sync`.
The scheduler, a process of its own, makes the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import structlog

from treadle.cron import Cron
from treadle.errors import InvalidArgument, MissingExtra, NotFound, TooLarge
from treadle.fields import EnqueueOptions, make_options
from treadle.masking import excerpt
from treadle.producer.task import Task
from treadle.worker.registry import Call

if TYPE_CHECKING:
    from treadle.db.database import Database
    from treadle.worker.registry import Registry

log = structlog.get_logger(__name__)
CatchUp = Literal["skip", "one", "all"]
Overlap = Literal["allow", "skip", "cancel_previous"]


class Schedules:
    """The schedules that an application declares; reached as `app.schedules`."""

    def __init__(self, registry: Registry, db: Database) -> None:
        self.declared: dict[str, dict[str, Any]] = {}
        self._registry = registry
        self._db = db

    def add(
        self,
        name: str,
        cron: str,
        work: Task | Call | str | None = None,
        spec: Mapping[str, Any] | None = None,
        *,
        tz: str = "UTC",
        dag: Mapping[str, Any] | None = None,
        jitter: float | timedelta = 0,
        catch_up: CatchUp = "one",
        overlap: Overlap = "allow",
        grace: float | timedelta = 60,
        options: EnqueueOptions | None = None,
    ) -> None:
        """Declare a schedule: a task, a call of one, the name of a type with a spec, or a DAG."""
        if name in self.declared:
            raise InvalidArgument(
                f"two schedules are named {name}", hint="Give one another name.", argument="name"
            )
        # Who only enqueues needs no calendar: then the scheduler reads the line.
        with suppress(MissingExtra):
            Cron(cron, tz)
        self.declared[name] = {
            "cron": " ".join(cron.split()),
            "timezone": tz,
            "jitter_s": _seconds(jitter),
            "catch_up": catch_up,
            "overlap": overlap,
            "grace_s": _seconds(grace),
            **_template(work, spec, dag, options),
        }

    async def declare(self, db: Database | None = None) -> dict[str, str]:
        """Make the schedules known, to another database if given; says of each what changed."""
        return await (db or self._db).schedules.declare(self._declaration())

    async def offer(self, db: Database) -> None:
        """The same when a worker starts; a schedule that is refused is no reason not to work."""
        for name, settings in self._declaration().items():
            try:
                verdict = (await db.schedules.declare({name: settings}))[name]
            except (InvalidArgument, NotFound, TooLarge) as error:
                log.error("schedule.refused", schedule=name, problem=str(error), hint=error.hint)
            else:
                if verdict != "unchanged":
                    log.info("schedule.declared", schedule=name, verdict=verdict)

    def _declaration(self) -> dict[str, dict[str, Any]]:
        """As SQL takes them; a type that was named gets the settings of its handler, if any."""
        made = {}
        for name, settings in self.declared.items():
            task = settings.get("task")
            handler = self._registry.get(task["type"]) if task else None
            if task and handler is not None and "define" not in task:
                _, options, _ = make_options({}, 1, handler.settings)
                settings = {**settings, "task": {**task, "define": options["define"]}}
            made[name] = settings
        return made


def _template(
    work: Task | Call | str | None,
    spec: Mapping[str, Any] | None,
    dag: Mapping[str, Any] | None,
    options: EnqueueOptions | None,
) -> dict[str, Any]:
    if (work is None) == (dag is None):
        raise InvalidArgument(
            "a schedule makes a task or a DAG",
            hint="Give a task, a call of one, a type's name, or dag={…}.",
            argument="work",
        )
    if dag is not None:
        return {"dag": dict(dag)}
    if isinstance(work, str):
        queue, given, keys = make_options(options or {}, 1, None)
        key = {"idempotency_key": keys[0]} if keys else {}
        return {"task": {**given, **key, "queue": queue, "type": work, "spec": dict(spec or {})}}
    if isinstance(work, Task):
        work = work.call(**(spec or {}))
    elif not isinstance(work, Call):
        raise InvalidArgument(
            f"{excerpt(work)} is no task",
            hint="Give a function with @app.task(), a call of one, or the name of a type.",
            argument="work",
        )
    elif spec:
        work = work.call(**spec)
    merged: EnqueueOptions = {**work.options, **(options or {})}
    made = Call(work.definition, work.arguments, merged).as_json()
    key = {"idempotency_key": merged["key"]} if "key" in merged else {}
    return {"task": {**made, **key}}


def _seconds(value: float | timedelta) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return round(seconds)
