"""`treadle projects`: whose work it is, and its share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

projects = common.group(
    """List and define projects: whose work it is, and its share in fair queues.

    \b
    Example:
      treadle projects define website --share 3
    """
)

COLUMNS = [
    Column("project", "name"),
    Column("share", "share", right=True),
    Column("ready", "ready", right=True),
    Column("waiting", "waiting", right=True),
    Column("running", "running", right=True),
    Column("external_ref", "external_ref", extra=True),
    Column("id", "id", extra=True),
]


@projects.command("list")
def list_projects(
    as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """List the projects with their share, and what they have waiting and running.

    \b
    Example:
      treadle projects list --json
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.projects.list()

    output.show(
        common.call(work, database_url), COLUMNS, as_json=as_json, empty="there is no project"
    )


@projects.command()
def define(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project's name.")],
    share: Annotated[
        float | None,
        typer.Option(metavar="N", help="Its part of a fair queue, against those of the others."),
    ] = None,
    external_ref: Annotated[str | None, typer.Option(help="Its name elsewhere.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a project, or change one; what is not named stays as it is.

    \b
    Example:
      treadle projects define website --share 3
    """
    given = {"share": share, "external_ref": external_ref}
    settings = {name: value for name, value in given.items() if value is not None}

    async def work(app: Treadle) -> UUID:
        return await app.db.projects.define(project, settings)

    made = common.call(work, database_url)
    if as_json:
        output.document({"id": made, "name": project})
    else:
        typer.echo(made)
