"""`treadle webhooks`: where events are sent, and how it goes.

A secret is shown only when it is made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.services.notifier.http import Answer

COLUMNS = [
    Column("webhook", "name"),
    Column("status", "status", output.state),
    Column("format", "format", extra=True),
    Column("address", "address"),
    Column("kinds", "kinds"),
    Column("delivered", "delivered", right=True),
    Column("unread", "unread", right=True),
    Column("failures", "failures", right=True),
    Column("next_try", "next_try_at", output.ago),
    Column("last_error", "last_error"),
]
TRIES = [
    Column("at", "at", output.ago),
    Column("webhook", "webhook"),
    Column("event", "event_id", right=True),
    Column("kind", "kind"),
    Column("status", "status", right=True),
    Column("ms", "ms", right=True),
    Column("error", "error"),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The webhook.")]


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """What an endpoint answered to a test."""
    facts = {
        "delivered": answer.error is None,
        "status": answer.status,
        "error": answer.error,
        "ms": answer.ms,
        "body": answer.body[:2000].decode(errors="replace"),
    }
    if as_json:
        output.document(facts)
        return
    for name, value in facts.items():
        output.separated([name, value])


def secret_in(path: Path) -> str:
    """The secret in a file."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} cannot be read as a secret: {error}") from None


def show_secret(name: str, secret: str | None, *, as_json: bool) -> None:
    """Print a new secret, the only time that it is shown."""
    if as_json:
        output.document({"webhook": name, "secret": secret})
    elif secret is not None:
        output.separated(["secret", secret])
        common.note("keep the secret: it is not shown again")


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.webhooks.list()

    rows = common.call(work, database_url)
    empty = "no webhook is defined; add one: treadle webhooks add --help"
    output.show(rows, COLUMNS, as_json=as_json, empty=empty)


webhooks = common.group(
    """See where events are sent and how it goes; add, test, pause, rotate, remove.

    \b
    Examples:
      treadle webhooks
      treadle webhooks add ops https://example.org/hook --kinds 'task.dead_lettered,dag.*'
    """,
    alone=_list,
)


@webhooks.command("list")
def list_webhooks(
    as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """List the webhooks: how much was delivered, what waits, what went wrong.

    \b
    Example:
      treadle webhooks list --json
    """
    _list(as_json, database_url)


@webhooks.command()
def show(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Show one webhook with everything but its secrets.

    \b
    Example:
      treadle webhooks show ops
    """

    async def work(app: Treadle) -> dict[str, Any]:
        return await app.db.webhooks.get(name)

    found = common.call(work, database_url)
    if as_json:
        output.document(found)
        return
    for key, value in found.items():
        output.separated([key, value])


@webhooks.command()
def add(
    name: Name,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="https://… or redis://…; - reads it from stdin.")
    ],
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="standard (the default), slack or redis."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(metavar="A,B*", help="Kinds of events; * for any ending. Else all."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="JSON", help="Only events that contain this, as they are sent."
        ),
    ] = None,
    stream: Annotated[str | None, typer.Option(metavar="NAME", help="The Redis stream.")] = None,
    max_length: Annotated[
        int | None,
        typer.Option(metavar="N", help="About so many entries stay in the stream; else 100000."),
    ] = None,
    allow_private: Annotated[
        bool | None,
        typer.Option(help="Private addresses too, where the notifier's settings permit it."),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A file with the secret; else one is made."),
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the oldest event that is kept.")
    ] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Add a webhook, or change one; its secret is printed once, when it is made.

    \b
    Examples:
      treadle webhooks add ops https://example.org/hook --kinds 'task.dead_lettered,dag.*'
      treadle webhooks add mail https://example.org/mail --filter '{"queue": "mail"}'
      treadle webhooks add chat https://hooks.slack.com/services/... --format slack
      treadle webhooks add feed rediss://cache.example.org --stream treadle
    """
    if url == "-":
        url = sys.stdin.readline().strip()
    settings = {
        "url": url,
        "format": form or ("redis" if stream is not None else None),
        "kinds": [kind.strip() for kind in kinds.split(",")] if kinds is not None else None,
        "filter": common.json_argument(only, "filter") if only is not None else None,
        "stream": stream,
        "max_length": max_length,
        "allow_private": allow_private,
        "secret": secret_in(secret_file) if secret_file is not None else None,
        "from_start": from_start or None,
    }
    named = {key: value for key, value in settings.items() if value is not None}

    async def work(app: Treadle) -> str | None:
        return await app.db.webhooks.define(name, named)

    made = common.call(work, database_url)
    show_secret(name, None if secret_file is not None else made, as_json=as_json)
    common.note(f"webhook {name} is set; try it: treadle webhooks test {name}")


@webhooks.command("test")
def send_test(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Send a webhook.test message from here, now, and show the answer.

    \b
    Example:
      treadle webhooks test ops

    It is signed like any other, and is not among the events.
    """

    async def work(app: Treadle) -> Answer:
        from uuid import uuid4

        from treadle.services.notifier import message_id, sender_for
        from treadle.services.outbound import OutboundPolicy

        target, document = await app.db.webhooks.test(name)
        async with sender_for(target, OutboundPolicy.for_webhooks(app.settings)) as sender:
            return await sender.send(
                message_id(target, f"test_{uuid4().hex}"), "webhook.test", document
            )

    answer = common.call(work, database_url)
    print_answer(answer, as_json=as_json)
    if answer.error is not None:
        raise typer.Exit(1)


@webhooks.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Send nothing to a webhook for now; its events wait.

    \b
    Example:
      treadle webhooks pause ops --reason "they move house"
    """
    common.call_db(lambda db: db.webhooks.pause(name, reason), database_url)
    output.print_done(f"webhook {name} is paused", as_json, name=name, status="paused")


@webhooks.command()
def resume(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Send to a webhook again, at once and from where it stopped.

    \b
    Example:
      treadle webhooks resume ops
    """
    common.call_db(lambda db: db.webhooks.resume(name), database_url)
    output.print_done(f"webhook {name} is active", as_json, name=name, status="active")


@webhooks.command()
def rotate(
    name: Name,
    keep: Annotated[
        float,
        typer.Option(metavar="S", help="The former secret signs too for so many seconds."),
    ] = 86_400,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Give a webhook a new secret, printed once; for a while both sign.

    \b
    Example:
      treadle webhooks rotate ops --keep 3600
    """

    async def work(app: Treadle) -> str:
        return await app.db.webhooks.rotate(name, keep)

    show_secret(name, common.call(work, database_url), as_json=as_json)


@webhooks.command()
def remove(
    name: Name,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Forget a webhook; what it has not got is not sent to it any more.

    \b
    Example:
      treadle webhooks remove ops --yes
    """
    common.confirm(f"remove webhook {name}", yes=yes)
    common.call_db(lambda db: db.webhooks.remove(name), database_url)
    output.print_done(f"webhook {name} is removed", as_json, name=name, status="removed")


@webhooks.command()
def deliveries(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The webhook; else all.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="So many tries.")
    ] = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List the last tries, the newest first; a hundred are kept of each webhook.

    \b
    Example:
      treadle webhooks deliveries ops -n 20
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        db = app.db
        if name is not None:
            await db.webhooks.get(name)
        return await db.webhooks.deliveries(name, limit)

    output.show(
        common.call(work, database_url), TRIES, as_json=as_json, empty="nothing was sent yet"
    )
