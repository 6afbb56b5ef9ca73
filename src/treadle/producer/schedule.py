"""Schedules that an application declares in code.

app.schedule("nightly-report", "30 2 * * *", report.call(kind="daily"), tz="Europe/Berlin")

Workers of the application store them when they start, and so does `treadle schedules sync`. The
scheduler, a process of its own, creates the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import structlog

from treadle.cron import Cron
from treadle.errors import InvalidArgument, MissingExtra, NotFound, TooLarge
from treadle.fields import EnqueueOptions
from treadle.masking import excerpt
from treadle.producer.task import Task
from treadle.worker.registry import Call, make_options

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
        """Declare a schedule for a task, a call, the name of a type with a spec, or a DAG."""
        if name in self.declared:
            raise InvalidArgument(
                f"there is already a schedule {name}", hint="Choose another name.", argument="name"
            )
        # Without cronsim, the scheduler checks the line.
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
        """Store the schedules in the database; return for each whether it changed."""
        return await (db or self._db).schedules.declare(self._declaration())

    async def offer(self, db: Database) -> None:
        """Store the schedules when a worker starts; log those that are rejected."""
        for name, settings in self._declaration().items():
            try:
                verdict = (await db.schedules.declare({name: settings}))[name]
            except (InvalidArgument, NotFound, TooLarge) as error:
                log.error("schedule.rejected", schedule=name, problem=str(error), hint=error.hint)
            else:
                if verdict != "unchanged":
                    log.info("schedule.declared", schedule=name, verdict=verdict)

    def _declaration(self) -> dict[str, dict[str, Any]]:
        """Return the schedules for SQL, with the settings of the handler of a named type."""
        made = {}
        for name, settings in self.declared.items():
            if task := settings.get("task"):
                define = self._registry.define(task["type"], task["queue"])
                settings = {**settings, "task": {**task, **({"define": define} if define else {})}}
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
            "a schedule needs either a task or a DAG",
            hint="Pass a task, a call, the name of a type, or dag={…}.",
            argument="work",
        )
    if dag is not None:
        return {"dag": dict(dag)}
    if isinstance(work, str):
        queue, given, key = make_options(options or {})
        named = {} if key is None else {"idempotency_key": key}
        return {"task": {**given, **named, "queue": queue, "type": work, "spec": dict(spec or {})}}
    if isinstance(work, Task):
        work = work.call(**(spec or {}))
    elif not isinstance(work, Call):
        raise InvalidArgument(
            f"{excerpt(work)} is not a task",
            hint="Pass a task, a call, or the name of a type.",
            argument="work",
        )
    elif spec:
        work = work.call(**spec)
    merged: EnqueueOptions = {**work.options, **(options or {})}
    return {"task": Call(work.definition, work.arguments, merged).as_json()}


def _seconds(value: float | timedelta) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return round(seconds)
