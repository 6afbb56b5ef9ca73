"""`treadle tasks retry` by id: what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from treadle.cli import common, history, out
from treadle.cli.out import Column
from treadle.errors import TreadleError

if TYPE_CHECKING:
    from treadle.app import Treadle

RESULTS = [Column("id", "id"), Column("now", "now"), Column("problem", "problem")]


def resolve(
    task_ids: Sequence[str],
    resolution: str,
    *,
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
                wanted = text.lstrip("….")
                async with history.pointed_to(reader, wanted):
                    found = await reader.find_task(wanted)
                    now = await gateway.retry_task(found, resolution, note=note)
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
