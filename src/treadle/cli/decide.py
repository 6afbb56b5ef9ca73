"""Decide about tasks that gave up: which ones are meant, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import typer

from treadle.cli import common, out
from treadle.cli.out import Column
from treadle.errors import InvalidArgument, TreadleError

if TYPE_CHECKING:
    from treadle.app import Treadle

RESULTS = [Column("id", "id"), Column("now", "now"), Column("problem", "problem")]
MANY = 10_000


def resolve(
    task_ids: Sequence[str],
    resolution: str,
    *,
    changes: Mapping[str, Any] | None = None,
    note: str | None,
    as_json: bool,
    database_url: str | None,
) -> None:
    """Decide about each task; one that cannot be decided about does not stop the others."""

    async def work(app: Treadle) -> list[tuple[UUID | str, str | None, TreadleError | None]]:
        reader, gateway = await app.reader(), await app.gateway()
        done: list[tuple[UUID | str, str | None, TreadleError | None]] = []
        for text in task_ids:
            found: UUID | str = text
            try:
                found = await reader.find_task(text.lstrip("…."))
                now = await gateway.retry_task(found, resolution, changes=changes, note=note)
                done.append((found, now, None))
            except TreadleError as error:
                if len(task_ids) == 1:
                    raise
                done.append((found, None, error))
        return done

    done = common.call(work, database_url)
    rows = [
        {"id": each, "now": now, "problem": problem and str(problem)} for each, now, problem in done
    ]
    out.show(rows, RESULTS, as_json=as_json)
    problems = [problem for _, _, problem in done if problem is not None]
    if problems:
        common.note(f"error: {len(problems)} of {len(done)} could not be decided about")
        raise typer.Exit(problems[0].exit_code)


def chosen_letters(
    verb: str,
    task_ids: list[str] | None,
    everything: bool,
    filters: Mapping[str, str | None],
    database_url: str | None,
) -> list[dict[str, Any]]:
    """The dead letters that are meant: those named, or all that match."""
    if bool(task_ids) == everything:
        raise InvalidArgument(
            "name tasks by id, or take them --all", hint=f"See: treadle dead {verb} --help"
        )
    if task_ids:
        if any(filters.values()):
            raise InvalidArgument("filters go with --all, not with ids")
        return [{"task_id": each} for each in task_ids]

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await (await app.reader()).dead_letters(
            queue=filters["queue"],
            type=filters["type"],
            failure_class=filters["failure_class"],
            limit=MANY,
        )

    rows = common.call(work, database_url)
    if len(rows) == MANY:
        common.note(f"only the newest {MANY} are taken; repeat it for the others")
    return rows
