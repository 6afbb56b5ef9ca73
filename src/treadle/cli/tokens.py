"""`treadle token`: who may use the HTTP interfaces, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output, times
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

COLUMNS = [
    Column("token", "name"),
    Column("id", "id"),
    Column("status", "status", output.state),
    Column("scopes", "scopes"),
    Column("queues", "queues"),
    Column("agent", "agent"),
    Column("project", "project", extra=True),
    Column("expires", "expires_at", output.ago),
    Column("last_used", "last_used_at", output.ago),
    Column("created_by", "created_by", extra=True),
]


def _list(as_json: bool, database_url: str | None, revoked: bool = False) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.tokens.list(revoked=revoked)

    rows = common.call(work, database_url)
    empty = "there is no token; make one: treadle token create --help"
    output.show(rows, COLUMNS, as_json=as_json, empty=empty)


token = common.group(
    """Say who may use the HTTP interfaces: create, list and revoke tokens.

    \b
    Examples:
      treadle token
      treadle token create ci --scope enqueue --queue mail --expires 90d
    """,
    alone=_list,
)


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")],
    scope: Annotated[
        list[str],
        typer.Option(metavar="SCOPE", help="read, enqueue, work, operate or admin; repeat it."),
    ],
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE", help="Only for this queue; repeat it for more."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="May act for this agent only.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only for work of this project.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="AGE", help="Ends after 90d, 12h, 90m; else never.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a token and print it, once: only its hash is stored.

    \b
    Examples:
      treadle token create dashboard --scope read
      treadle token create ci --scope enqueue --queue mail --expires 90d
      treadle token create steve --scope read --scope work --agent steve-w
    """
    settings = {
        "scopes": scope,
        "queues": queue or None,
        "agent": agent,
        "project": project,
        "expires_s": times.parse(expires, "expires") if expires is not None else None,
    }
    named = {key: value for key, value in settings.items() if value is not None}

    async def work(app: Treadle) -> str:
        return await app.db.tokens.create(name, named)

    made = common.call(work, database_url)
    if as_json:
        output.document({"name": name, "id": made.split("_")[1], "token": made, **named})
    else:
        typer.echo(made)
    common.note("keep it now, it is not shown again; send it as: Authorization: Bearer TOKEN")


@token.command("list")
def list_tokens(
    revoked: Annotated[bool, typer.Option("--revoked", help="Those too that are revoked.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List the tokens: what each may do, when it ends and when it was used.

    \b
    Example:
      treadle token list --revoked
    """
    _list(as_json, database_url, revoked)


@token.command()
def revoke(
    which: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")],
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """End a token for good; servers refuse it within five seconds.

    \b
    Example:
      treadle token revoke ci
    """
    # Somebody may paste the whole token: the secret part goes no further.
    parts = which.split("_")
    known = parts[1] if which.startswith("trd_") and len(parts) > 2 else which
    revoked = common.call_db(lambda db: db.tokens.revoke(known), database_url)
    output.print_done(f"token {revoked} is revoked", as_json, id=revoked, status="revoked")
