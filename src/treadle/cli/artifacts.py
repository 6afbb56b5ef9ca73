"""`treadle artifacts`: the files of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, times
from treadle.cli import output as out
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.artifacts.sweeper import SweepResult

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Artifact id, or its last 6 or more characters.")
]
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(value: int | None) -> str:
    """So many bytes, in a few characters."""
    if value is None:
        return "-"
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


COLUMNS = [
    Column("id", "id", out.short),
    Column("status", "status"),
    Column("size", "bytes", size, right=True),
    Column("media type", "media_type"),
    Column("task", "task_id", out.short),
    Column("attempt", "attempt", right=True, extra=True),
    Column("created", "created_at", out.ago),
    Column("name", "name"),
]


def _list(
    as_json: bool, database_url: str | None, task: str | None = None, limit: int = 50
) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        db = app.db
        found = None if task is None else await db.tasks.find(task.lstrip("…."))
        return await db.artifacts.list(task_id=found, limit=limit)

    rows = common.call(work, database_url)
    out.show(rows, COLUMNS, as_json=as_json, empty="no task has stored a file")


artifacts = common.group(
    """List, show and fetch the files of tasks; sweep those that belong to nobody.

    \b
    Examples:
      treadle artifacts
      treadle artifacts get 9f3a21c4 -o report.pdf
    """,
    alone=_list,
)


@artifacts.command("list")
def list_artifacts(
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this task, all its attempts.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List artifacts, the newest first.

    \b
    Example:
      treadle artifacts list --task 9f3a21c4
    """
    _list(as_json, database_url, task, limit)


@artifacts.command("show")
def show_artifact(
    artifact_id: Id, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Show one artifact: who made it, its size and hash, and where it is.

    \b
    Example:
      treadle artifacts show 9f3a21c4
    """
    found = common.call(lambda app: _find(app, artifact_id), database_url)
    if as_json:
        out.document(found)
        return
    for name, value in found.items():
        out.separated([name, value])


@artifacts.command("get")
def get_artifact(
    artifact_id: Id,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Save it here; - is stdout.")
    ],
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Fetch the file of an artifact and check its hash.

    \b
    Examples:
      treadle artifacts get 9f3a21c4 -o report.pdf
      treadle artifacts get 9f3a21c4 -o - | less
    """

    async def work(app: Treadle) -> dict[str, Any]:
        found = await _find(app, artifact_id)
        file = await app.artifacts.open(found["id"])
        if str(output) == "-":
            async for chunk in file:
                typer.echo(chunk, nl=False)
        else:
            await file.save(output)
        return found

    if as_json and str(output) == "-":
        raise InvalidArgument("stdout is for the file or for JSON", hint="Save it: -o report.pdf")
    if output.is_dir():
        raise InvalidArgument(f"{output} is a folder", hint="Name the file: -o report.pdf")
    if not output.parent.is_dir():
        raise InvalidArgument(f"there is no folder {output.parent}", hint="Make it first.")
    found = common.call(work, database_url)
    if as_json:
        out.document({**found, "output": output})
    elif str(output) != "-":
        common.note(f"{output} has {size(found['bytes'])}, sha256 {found['sha256']}")


@artifacts.command()
def sweep(
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Leave what is younger: 90m, 12h, 7d.")
    ] = "1h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Delete files that belong to nobody: never finished, or of tasks that are gone.

    \b
    Examples:
      treadle artifacts sweep --dry-run
      treadle artifacts sweep --older-than 1d

    Exit code 6: the store does not answer, or kept a file.
    """

    grace_s = times.parse(older_than, "older-than")
    if grace_s is None:
        raise InvalidArgument("nothing is older than forever", hint="Say 90m, 12h or 7d.")

    async def work(app: Treadle) -> SweepResult:
        from treadle.artifacts.sweeper import sweep as run

        return await run(app.db, app.store, grace_s=grace_s, dry_run=dry_run)

    swept = common.call(work, database_url)
    counts = {
        "unfinished_or_of_gone_tasks": swept.rows,
        "without_a_task": swept.files,
        "failed": swept.failed,
        "elsewhere": swept.elsewhere,
    }
    if as_json:
        out.document({"dry_run": dry_run, **counts, "keys": swept.keys})
    else:
        for key in swept.keys:
            typer.echo(key)
        did = "would be deleted" if dry_run else "deleted"
        common.note(f"{swept.rows + swept.files} files {did}, {swept.failed} could not be")
        if swept.elsewhere:
            common.note(f"{swept.elsewhere} lie in another store than TREADLE_ARTIFACTS_URL")
    if swept.failed:
        raise typer.Exit(6)


async def _find(app: Treadle, given: str) -> dict[str, Any]:
    """The artifact with this id, or whose id ends so."""
    return await app.db.artifacts.find(given.lstrip("….").removeprefix("artifact:"))
