"""`treadle artifacts`: the files that tasks stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.artifacts.sweep import SweepResult
    from treadle.db.database import Database


def _artifact_id(text: str) -> str:
    return common.strip_ellipsis(text).removeprefix("artifact:")


ArtifactId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Artifact id, or its last 6 or more characters.", parser=_artifact_id
    ),
]
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(value: int | None) -> str:
    """A number of bytes in the largest unit that fits."""
    if value is None:
        return "-"
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status"),
    Column("size", "bytes", size, right=True),
    Column("media_type", "media_type"),
    Column("task", "task_id", output.short),
    Column("attempt", "attempt", right=True, extra=True),
    Column("created", "created_at", output.ago),
    Column("name", "name"),
]

artifacts = Noun(
    "artifacts",
    """List, show and download the files of tasks; sweep files without a task.

    \b
    Examples:
      treadle artifacts
      treadle artifacts download 9f3a21c4 -o report.pdf
    """,
)


@artifacts.verb("list")
def list_artifacts(task: common.OfTask = None, limit: common.Limit = 50) -> None:
    """List artifacts, newest first.

    \b
    Example:
      treadle artifacts list --task 9f3a21c4
    """

    async def read(db: Database) -> list[dict[str, Any]]:
        task_id = None if task is None else await db.tasks.find(task)
        return await db.artifacts.list(task_id=task_id, limit=limit)

    output.show(common.call_db(read), COLUMNS, empty="no task has stored a file")


@artifacts.verb("show")
def show_artifact(artifact_id: ArtifactId) -> None:
    """Show one artifact: its task, size, hash and location.

    \b
    Example:
      treadle artifacts show 9f3a21c4
    """
    output.print_record(common.call_db(lambda db: db.artifacts.find(artifact_id)))


@artifacts.verb()
def download(
    artifact_id: ArtifactId,
    path: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")
    ],
) -> None:
    """Download the file of an artifact and verify its hash.

    \b
    Examples:
      treadle artifacts download 9f3a21c4 -o report.pdf
      treadle artifacts download 9f3a21c4 -o - | less
    """

    async def fetch(app: Treadle) -> dict[str, Any]:
        found = await app.db.artifacts.find(artifact_id)
        file = await app.artifacts.open(found["id"])
        if str(path) == "-":
            async for chunk in file:
                typer.echo(chunk, nl=False)
        else:
            await file.save(path)
        return found

    if common.options.json and str(path) == "-":
        raise InvalidArgument(
            "stdout cannot hold both the file and JSON", hint="Save the file: -o report.pdf"
        )
    if path.is_dir():
        raise InvalidArgument(f"{path} is a folder", hint="Name the file: -o report.pdf")
    if not path.parent.is_dir():
        raise InvalidArgument(f"there is no folder {path.parent}", hint="Create it first.")
    found = common.call(fetch)
    if common.options.json:
        output.document({**found, "output": path})
    elif str(path) != "-":
        common.note(f"{path} has {size(found['bytes'])}, sha256 {found['sha256']}")


@artifacts.verb()
def sweep(
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Keep younger files: 90m, 12h, 7d.")
    ] = "1h",
    dry_run: common.DryRun = False,
) -> None:
    """Delete files that were never finished, or whose tasks no longer exist.

    \b
    Examples:
      treadle artifacts sweep --dry-run
      treadle artifacts sweep --older-than 1d

    Exit code 6: the store did not respond, or a file could not be deleted.
    """
    grace_s = common.parse_age(older_than, "older-than")
    if grace_s is None:
        raise InvalidArgument("no file is older than forever", hint="Write 90m, 12h or 7d.")

    async def run(app: Treadle) -> SweepResult:
        from treadle.artifacts.sweep import sweep as sweep_files

        return await sweep_files(app.db, app.store, grace_s=grace_s, dry_run=dry_run)

    swept = common.call(run)
    counts = {
        "unfinished_or_of_gone_tasks": swept.rows,
        "without_a_task": swept.files,
        "failed": swept.failed,
        "elsewhere": swept.elsewhere,
    }
    if common.options.json:
        output.document({"dry_run": dry_run, **counts, "keys": swept.keys})
    else:
        for key in swept.keys:
            typer.echo(key)
        action = "would be deleted" if dry_run else "deleted"
        common.note(f"{swept.rows + swept.files} files {action}, {swept.failed} failed")
        if swept.elsewhere:
            common.note(f"{swept.elsewhere} are in another store than TREADLE_ARTIFACTS_URL")
    if swept.failed:
        raise typer.Exit(6)
