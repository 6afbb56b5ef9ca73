"""`treadle dead retry`, `cancel`, `modify` and `escalate`: letters by id, or all that match."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from treadle.cli import common
from treadle.cli.review import (
    All,
    Asked,
    By,
    Class,
    Delay,
    DryRun,
    Escalated,
    Group,
    Ids,
    Note,
    Older,
    Poison,
    Queue,
    Type,
    decide,
    letter_filters,
    seconds_until,
)
from treadle.errors import InvalidArgument


def retry(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    after: Delay = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run dead letters again with a new round of attempts, now or later.

    \b
    Examples:
      treadle dead retry 9f3a21c4 --note "provider is back"
      treadle dead retry --group 9f3a21c4d0e5 --after 2h --dry-run

    Exit code 3: no such letter. 4: someone was first, or it cannot run again.
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = Asked("retry", task_ids, everything, filters, dry_run, yes, as_json, database_url)
    decide(asked, Decision("retry", by=by, note=note, delay_s=seconds_until(after)))


def cancel(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Give dead letters up for good, and what depends on them.

    \b
    Examples:
      treadle dead cancel 9f3a21c4 --note obsolete
      treadle dead cancel --queue mail --older-than 30d --dry-run

    Exit code 3: no such letter. 4: someone was first.
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = Asked("cancel", task_ids, everything, filters, dry_run, yes, as_json, database_url)
    decide(asked, Decision("cancel", by=by, note=note))


def escalate(
    to: Annotated[str, typer.Option("--to", metavar="WHO", help="Who is to decide.")],
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Hand dead letters to someone; they stay open, are listed first, and an event tells it.

    \b
    Examples:
      treadle dead escalate 9f3a21c4 --to ops --note "needs a new key"
      treadle dead escalate --class auth_failure --not-escalated --to ops
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = Asked("escalate", task_ids, everything, filters, dry_run, yes, as_json, database_url)
    decide(asked, Decision("escalate", by=by, note=note, to=to))


def modify(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    from_queue: Annotated[str | None, typer.Option(help="All of this queue.")] = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    spec: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments to change: JSON, @file or -; others stay."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change one value: a.b=2; may be repeated."
        ),
    ] = None,
    unsets: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="PATH", help="Take one value away; may be repeated."),
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    queue: Annotated[str | None, typer.Option(help="Move it to this queue.")] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="For the new round.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Longest attempt.")] = None,
    after: Delay = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Change dead letters and run them again; an edit that does not fit changes nothing.

    \b
    Examples:
      treadle dead modify 9f3a21c4 --spec '{"url": "https://example.org/new"}'
      treadle dead modify --group 9f3a21c4d0e5 --set options.retries=0 --timeout 600 --dry-run
    """
    from treadle.db.dead_letters import Decision

    changes = {
        "spec": common.json_argument(spec, "spec") if spec is not None else None,
        "set": dict(_pair(each) for each in sets) if sets else None,
        "unset": unsets or None,
        "priority": priority,
        "queue": queue,
        "max_attempts": max_attempts,
        "timeout_s": timeout,
    }
    named = {name: value for name, value in changes.items() if value is not None}
    if not named:
        raise InvalidArgument("nothing to change is named", hint="For example: --set url=new")
    filters = letter_filters(
        group=group,
        queue=from_queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = Asked("modify", task_ids, everything, filters, dry_run, yes, as_json, database_url)
    decide(
        asked,
        Decision("modify_and_retry", named, by=by, note=note, delay_s=seconds_until(after)),
    )


def _pair(text: str) -> tuple[str, Any]:
    """A path and its value, which is JSON, or text where it is none."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InvalidArgument(f"{text!r} is not PATH=VALUE", hint="For example: --set a.b=2")
    return path, common.json_or_text(value)
