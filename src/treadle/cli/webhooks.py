"""`treadle webhooks`: endpoints that events are sent to.

A secret is shown only when it is created.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.common import Name
from treadle.cli.nouns import Noun, add_create_and_update, add_delete, add_pause_and_resume
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.services.notifier.http import Answer

COLUMNS = [
    Column("webhook", "name"),
    Column("status", "status", output.state),
    Column("format", "format", extra=True),
    Column("url", "address"),
    Column("kinds", "kinds"),
    Column("delivered", "delivered", right=True),
    Column("unsent", "unread", right=True),
    Column("failures", "failures", right=True),
    Column("next_attempt", "next_try_at", output.ago),
    Column("last_error", "last_error"),
]
DELIVERIES = [
    Column("time", "at", output.ago),
    Column("webhook", "webhook"),
    Column("event_id", "event_id", right=True),
    Column("event", "kind"),
    Column("status", "status", right=True),
    Column("duration_ms", "ms", right=True),
    Column("error", "error"),
]

webhooks = Noun(
    "webhooks",
    """List webhooks and their deliveries; create, test, pause, rotate and delete them.

    \b
    Examples:
      treadle webhooks
      treadle webhooks create ops https://example.org/hook --kind task.dead_lettered --kind 'dag.*'
    """,
)


@webhooks.verb("list")
def list_webhooks() -> None:
    """List webhooks with their delivered and unsent events and their last errors.

    \b
    Example:
      treadle webhooks list --json
    """
    rows = common.call_db(lambda db: db.webhooks.list())
    output.show(rows, COLUMNS, empty="no webhooks; create one: treadle webhooks create --help")


@webhooks.verb()
def show(name: Name) -> None:
    """Show the settings and the state of a webhook; its secrets are not shown.

    \b
    Example:
      treadle webhooks show ops
    """
    output.print_record(common.call_db(lambda db: db.webhooks.get(name)))


def webhook_settings(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="https://… or redis://…; - reads it from stdin."),
    ] = None,
    message_format: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="standard (the default), slack or redis."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", "-k", metavar="KIND", help="Kind of event, such as dag.*; repeatable."
        ),
    ] = None,
    event_filter: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="What an event must contain.")
    ] = None,
    stream: Annotated[str | None, typer.Option(metavar="NAME", help="Redis stream.")] = None,
    max_length: Annotated[
        int | None,
        typer.Option(metavar="N", help="Approximate length of the stream; default: 100000."),
    ] = None,
    allow_private: Annotated[
        bool | None,
        typer.Option(help="Allow private addresses, if the notifier's settings allow them."),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File with the secret; default: create one."),
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Start with the oldest event that is kept.")
    ] = False,
) -> dict[str, Any]:
    """The settings of a webhook that were given."""
    if url == "-":
        url = sys.stdin.readline().strip()
    return common.named(
        {
            "url": url,
            "format": message_format or ("redis" if stream is not None else None),
            "kinds": kind or None,
            "filter": common.json_argument(event_filter, "filter") if event_filter else None,
            "stream": stream,
            "max_length": max_length,
            "allow_private": allow_private,
            "secret": _read_secret(secret_file) if secret_file is not None else None,
            "from_start": from_start or None,
        }
    )


async def _define(db: Database, name: str, settings: dict[str, Any]) -> tuple[bool, str | None]:
    secret, created = await db.webhooks.define(name, settings)
    # The caller knows a secret that it passes.
    return created, None if "secret" in settings else secret


def _print_defined(name: str, verb: str, secret: str | None) -> None:
    _print_secret(name, secret)
    common.note(f"webhook {name} is {verb}; test it: treadle webhooks test {name}")


add_create_and_update(
    webhooks,
    "webhook",
    _define,
    webhook_settings,
    create="""Create a webhook and print its secret once.

    \b
    Examples:
      treadle webhooks create ops https://example.org/hook --kind task.dead_lettered --kind 'dag.*'
      treadle webhooks create mail https://example.org/mail --filter '{"queue": "mail"}'
      treadle webhooks create chat https://hooks.slack.com/services/... --format slack
      treadle webhooks create feed rediss://cache.example.org --stream treadle
    """,
    update="""Change the named settings of a webhook.

    \b
    Example:
      treadle webhooks update ops --kind task.dead_lettered --kind 'dag.*'
    """,
    done=_print_defined,
    get=lambda db, name: db.webhooks.get(name),
)


@webhooks.verb("test")
def send_test(name: Name) -> None:
    """Send a webhook.test message from this host and print the response.

    \b
    Example:
      treadle webhooks test ops

    The message is signed like an event, and is not stored as one. Exit code 1: it was not
    delivered.
    """

    async def send(app: Treadle) -> Answer:
        from uuid import uuid4

        from treadle.services.notifier import message_id, sender_for
        from treadle.services.outbound import OutboundPolicy

        target, document = await app.db.webhooks.test(name)
        async with sender_for(target, OutboundPolicy.for_webhooks(app.settings)) as sender:
            return await sender.send(
                message_id(target, f"test_{uuid4().hex}"), "webhook.test", document
            )

    answer = common.call(send)
    output.print_record(
        {
            "delivered": answer.error is None,
            "status": answer.status,
            "error": answer.error,
            "ms": answer.ms,
            "body": answer.body[:2000].decode(errors="replace"),
        }
    )
    if answer.error is not None:
        raise typer.Exit(1)


@webhooks.verb()
def rotate(
    name: Name,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time during which the old secret signs too."),
    ] = 86_400,
) -> None:
    """Replace the secret of a webhook and print the new one once.

    \b
    Example:
      treadle webhooks rotate ops --grace 3600
    """
    _print_secret(name, common.call_db(lambda db: db.webhooks.rotate(name, grace)))


@webhooks.verb()
def deliveries(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Webhook; default: all.")
    ] = None,
    limit: common.Limit = 50,
) -> None:
    """List delivery attempts, newest first; the last hundred of each webhook are kept.

    \b
    Example:
      treadle webhooks deliveries ops -n 20
    """

    async def read(db: Database) -> list[dict[str, Any]]:
        if name is not None:
            await db.webhooks.get(name)
        return await db.webhooks.deliveries(name, limit)

    output.show(common.call_db(read), DELIVERIES, empty="nothing was sent yet")


add_pause_and_resume(
    webhooks,
    "webhook",
    lambda db: db.webhooks,
    pause="Stop sending events to a webhook; they are kept and sent later.",
    resume="Send events to a paused webhook again, from where it stopped.",
    example="ops",
)
add_delete(
    webhooks,
    "webhook",
    lambda db, name: db.webhooks.remove(name),
    text="Delete a webhook; its unsent events are not sent.",
    example="ops",
)


def _read_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} cannot be read as a secret: {error}") from None


def _print_secret(name: str, secret: str | None) -> None:
    if common.options.json:
        output.document({"webhook": name, "secret": secret})
    elif secret is not None:
        output.separated(["secret", secret])
        common.note("store the secret now, it is not shown again")
