"""`treadle tokens`: access to the HTTP interfaces."""

from __future__ import annotations

from typing import Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

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

tokens = Noun(
    "tokens",
    """Create, list and revoke tokens for the HTTP interfaces.

    \b
    Examples:
      treadle tokens
      treadle tokens create ci --scope enqueue --queue mail --expires 90d
    """,
)


@tokens.verb("list")
def list_tokens(
    revoked: Annotated[bool, typer.Option("--revoked", help="Include revoked tokens.")] = False,
) -> None:
    """List tokens with their scopes, expiry and last use.

    \b
    Example:
      treadle tokens list --revoked
    """
    rows = common.call_db(lambda db: db.tokens.list(revoked=revoked))
    output.show(rows, COLUMNS, empty="no tokens; create one: treadle tokens create --help")


@tokens.verb()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token's owner.")],
    scope: Annotated[
        list[str],
        typer.Option(metavar="SCOPE", help="read, enqueue, work, operate or admin; repeatable."),
    ],
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE", help="Restrict it to this queue; repeatable."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Restrict it to this agent.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="NAME", help="Restrict it to this project.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="AGE", help="Expire after 90d, 12h, 90m; default: never.")
    ] = None,
) -> None:
    """Create a token and print it; only its hash is stored, so it is not shown again.

    \b
    Examples:
      treadle tokens create dashboard --scope read
      treadle tokens create ci --scope enqueue --queue mail --expires 90d
      treadle tokens create steve --scope read --scope work --agent steve-w
    """
    settings = common.named(
        {
            "scopes": scope,
            "queues": queue or None,
            "agent": agent,
            "project": project,
            "expires_s": common.parse_age(expires, "expires") if expires is not None else None,
        }
    )
    token = common.call_db(lambda db: db.tokens.create(name, settings))
    if common.options.json:
        output.document({"name": name, "id": token.split("_")[1], "token": token, **settings})
    else:
        typer.echo(token)
    common.note("store it now, it is not shown again; send it as: Authorization: Bearer TOKEN")


@tokens.verb()
def revoke(
    token: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")],
) -> None:
    """Revoke a token permanently; servers reject it within five seconds.

    \b
    Example:
      treadle tokens revoke ci
    """
    # If the whole token is pasted, its secret part is not sent to the database.
    parts = token.split("_")
    name = parts[1] if token.startswith("trd_") and len(parts) > 2 else token
    revoked = common.call_db(lambda db: db.tokens.revoke(name))
    output.print_done(f"token {revoked} is revoked", id=revoked, status="revoked")
