"""`treadle tasks fork`: the work of a task once more, from one of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, out
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle


def fork(
    task_id: common.TaskId,
    from_step: Annotated[
        str, typer.Option("--from", metavar="STEP", help="The first step to do again.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument to change; may be repeated."),
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a new task that keeps the steps before one, and print its id.

    \b
    Examples:
      treadle tasks fork 9f3a21c4 --from draft
      treadle tasks fork 9f3a21c4 --from draft --set tone=dry --set 'words=300'

    A value is JSON, or text when it is not. Exit code 3: no such task, or no such step.
    """
    changes = _changes(settings or [])

    async def work(app: Treadle) -> tuple[UUID, UUID]:
        found = await (await app.reader()).find_task(task_id.lstrip("…."))
        gateway = await app.gateway()
        return found, await gateway.fork_task(found, from_step, changes, None)

    found, made = common.call(work, database_url)
    if as_json:
        out.document({"id": made, "forked_from": found})
    elif out.console().is_terminal:
        out.console().print(out.plain(f"{made}  forked from {found}"))
    else:
        typer.echo(made)


def _changes(settings: Sequence[str]) -> dict[str, Any]:
    """The changes that `key=value` stand for."""
    spec: dict[str, Any] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not key or not equals:
            raise InvalidArgument(
                f"{each!r} is not KEY=VALUE", hint="For example: --set tone=dry", argument="set"
            )
        spec[key] = common.json_or_text(value)
    return {"spec": spec} if spec else {}
