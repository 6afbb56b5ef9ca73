"""`treadle projects`: groups of work, and their shares of fair queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun, add_create_and_update
from treadle.cli.output import Column

if TYPE_CHECKING:
    from uuid import UUID

    from treadle.db.database import Database

projects = Noun(
    "projects",
    """List projects; create them and update their shares of fair queues.

    \b
    Example:
      treadle projects create website --share 3
    """,
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


@projects.verb("list")
def list_projects() -> None:
    """List projects with their shares and their tasks.

    \b
    Example:
      treadle projects list --json
    """
    rows = common.call_db(lambda db: db.projects.list())
    output.show(rows, COLUMNS, empty="no projects; create one: treadle projects create NAME")


def project_settings(
    share: Annotated[
        float | None, typer.Option(metavar="N", help="Weight in fair queues; default: 1.")
    ] = None,
    external_ref: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Reference in another system.")
    ] = None,
) -> dict[str, Any]:
    """The settings of a project that were given."""
    return common.named({"share": share, "external_ref": external_ref})


async def _define(db: Database, name: str, settings: dict[str, Any]) -> tuple[bool, UUID]:
    project_id, created = await db.projects.define(name, settings)
    return created, project_id


def _print_defined(name: str, verb: str, project_id: UUID) -> None:
    text = f"project {name} is {verb}"
    output.print_new(project_id, text, id=project_id, name=name, status=verb)


add_create_and_update(
    projects,
    "project",
    _define,
    project_settings,
    create="""Create a project and print its id.

    \b
    Example:
      treadle projects create website --share 3
    """,
    update="""Change the named settings of a project and print its id.

    \b
    Example:
      treadle projects update website --share 3
    """,
    done=_print_defined,
)
