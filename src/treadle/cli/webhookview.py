"""How webhooks, their tries and answers are shown; a secret only when it is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from treadle.cli import common, out
from treadle.cli.out import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.services.notifier.http import Answer

COLUMNS = [
    Column("webhook", "name"),
    Column("status", "status", out.state),
    Column("format", "format", extra=True),
    Column("address", "address"),
    Column("kinds", "kinds"),
    Column("delivered", "delivered", right=True),
    Column("unread", "unread", right=True),
    Column("failures", "failures", right=True),
    Column("next_try", "next_try_at", out.ago),
    Column("last_error", "last_error"),
]
TRIES = [
    Column("at", "at", out.ago),
    Column("webhook", "webhook"),
    Column("event", "event_id", right=True),
    Column("kind", "kind"),
    Column("status", "status", right=True),
    Column("ms", "ms", right=True),
    Column("error", "error"),
]


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
        out.document(facts)
        return
    for name, value in facts.items():
        out.separated([name, value])


def secret_in(path: Path) -> str:
    """The secret in a file."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} cannot be read as a secret: {error}") from None


def show_secret(name: str, secret: str | None, *, as_json: bool) -> None:
    """Print a new secret, the only time that it is shown."""
    if as_json:
        out.document({"webhook": name, "secret": secret})
    elif secret is not None:
        out.separated(["secret", secret])
        common.note("keep the secret: it is not shown again")
