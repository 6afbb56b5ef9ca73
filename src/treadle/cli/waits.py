"""`treadle waits`: questions and events that tasks wait for, and answers to them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column, Record
from treadle.errors import IllegalTransition, InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database

OPEN = [
    Column("id", "id", output.short),
    Column("task", "task_id", output.short),
    Column("title", "task_title", extra=True),
    Column("opened", "opened_at", output.ago, extra=True),
    Column("expires", "expires_at", output.ago),
    Column("answers", "answered"),
    Column("options", "options"),
    Column("question", "asks"),
]
ALL = [OPEN[0], Column("status", "status", output.state), *OPEN[1:]]
VERDICTS = [Column("id", "id"), Column("verdict", "verdict")]
WaitId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Wait id, or its last 6 or more characters.",
        parser=common.strip_ellipsis,
    ),
]

waits = Noun(
    "waits",
    """List what tasks wait for, and answer questions.

    \b
    Examples:
      treadle waits
      treadle waits answer 9f3a21c4 approve
    """,
)


@waits.verb("list")
def list_waits(
    everything: Annotated[
        bool, typer.Option("--all", help="Include waits that have ended; newest first.")
    ] = False,
    task: common.OfTask = None,
    limit: common.Limit = 50,
    ids_only: common.IdsOnly = False,
) -> None:
    """List the answers and events that tasks wait for, oldest first.

    \b
    Examples:
      treadle waits
      treadle waits list --all --task 9f3a21c4
    """

    async def read(db: Database) -> list[dict[str, Any]]:
        found = await db.tasks.find(task) if task is not None else None
        return await db.waits.list(ended=everything, task_id=found, limit=limit)

    rows = [with_times(row) for row in common.call_db(read)]
    if common.options.json:
        output.document({"items": rows})
    elif ids_only:
        output.print_ids(rows)
    else:
        shown = [{**row, **wait_summary(row)} for row in rows]
        output.show(shown, ALL if everything else OPEN, empty="no task is waiting")


@waits.verb()
def answer(
    wait_id: WaitId,
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="An option, JSON or text; default: ask for it."),
    ] = None,
    actor: common.Actor = None,
    reason: common.Reason = None,
) -> None:
    """Answer a question that a task waits for.

    \b
    Examples:
      treadle waits answer 9f3a21c4 approve --actor alice --reason "looks good"
      treadle waits answer 9f3a21c4 '{"amount": 12.5}'
      treadle waits answer 9f3a21c4

    A value that is one of the options is taken as it is; otherwise it is JSON, or text if it is
    not valid JSON. Without a value, the question is shown and asked, which needs a terminal.
    Exit code 3: there is no such wait. 4: it is answered already, or has ended.
    """
    asked: Any = None
    if value is None:
        if common.options.json or not sys.stdin.isatty():
            raise InvalidArgument(
                "no answer is given, and there is no terminal to ask for it",
                hint="See the question and its options: treadle waits",
            )
        asked = _ask(common.call_db(lambda db: _get(db, wait_id)))

    async def send(app: Treadle) -> tuple[dict[str, Any], str]:
        row = await _get(app.db, wait_id)
        given = asked if value is None else _parse_answer(row, value)
        verdict = await app.answer(row["id"], given, by=actor, note=reason)
        return await app.db.waits.get(row["id"]), verdict

    row, verdict = common.call(send)
    if common.options.json:
        output.document({"verdict": verdict, **with_times(row)})
        return
    decided = row["status"] != "open"
    state = "answered" if decided else f"recorded ({_votes(row)} of {row['approvers']})"
    text = f"already {state}" if verdict == "already" else state
    output.show([{"id": row["id"], "verdict": text}], VERDICTS)


def wait_summary(wait: Record) -> dict[str, Any]:
    """The question of a wait, the title of its task, its answers, and when it expires."""
    return {
        "asks": wait["question"] or f"event {wait['event']} {wait['event_key']}".rstrip(),
        "task_title": wait["title"] or wait["task_name"] or wait["type"],
        "answered": _answers(wait),
        "expires_at": wait["expires_at"] if wait["status"] == "open" else None,
    }


def with_times(wait: Record) -> dict[str, Any]:
    """A wait whose answers have times; the server sends them as JSON text."""
    answers = [{**each, "at": datetime.fromisoformat(each["at"])} for each in wait["answers"]]
    return {**wait, "answers": answers}


async def _get(db: Database, text: str) -> dict[str, Any]:
    return await db.waits.get(await db.waits.find(text))


def _parse_answer(wait: Record, text: str) -> Any:
    """An option as it is written, otherwise JSON or text."""
    return text if text in (wait["options"] or []) else common.json_or_text(text)


def _votes(wait: Record) -> int:
    """The number of equal answers, of the most common one."""
    counts = Counter(json.dumps(each["value"], sort_keys=True) for each in wait["answers"])
    return max(counts.values(), default=0)


def _answers(wait: Record) -> str | None:
    if wait["status"] == "answered":
        value = output.flat(wait["answer"])
        return f"{value} by {wait['answered_by']}" if wait["answered_by"] else f"{value} on expiry"
    if wait["kind"] == "event" or wait["status"] != "open":
        return None
    names = ", ".join(each["actor"] for each in wait["answers"])
    if not names and wait["approvers"] == 1:
        return None
    count = f"{_votes(wait)} of {wait['approvers']}"
    return f"{count}: {names}" if names else count


def _ask(wait: Record) -> Any:
    """Show a question on the terminal and ask for the answer."""
    from rich.prompt import Prompt

    terminal = output.console()
    summary = wait_summary(wait)
    terminal.print(output.plain(summary["asks"], "bold"))
    opened = output.ago(wait["opened_at"])
    terminal.print(output.plain(f"asked by {summary['task_title']}, {opened}"))
    for name in ("context", "schema"):
        if wait[name] is not None:
            shown = json.dumps(wait[name], indent=2, ensure_ascii=False)
            terminal.print(output.plain(f"{name}: {shown}"))
    for each in wait["answers"]:
        reason = f": {each['note']}" if each["note"] else ""
        line = f"{each['actor']} answered {output.flat(each['value'])}{reason}"
        terminal.print(output.plain(line, "bright_black"))
    if wait["status"] != "open":
        raise IllegalTransition(
            f"wait {wait['id']} is {wait['status']}",
            hint="See its answers: treadle waits list --all",
        )
    if wait["kind"] == "event":
        raise InvalidArgument(
            f"wait {wait['id']} is for an event, not for an answer",
            hint=f"Emit it: treadle events emit {wait['event']} --key '{wait['event_key']}'",
        )
    options = {
        option if isinstance(option, str) else json.dumps(option): option
        for option in wait["options"] or []
    }
    try:
        text = Prompt.ask(output.plain("answer"), console=terminal, choices=list(options) or None)
    except EOFError:
        raise typer.Abort from None
    return options[text] if options else common.json_or_text(text)
