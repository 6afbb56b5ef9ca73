"""`treadle waits`, `answer` and `emit`: what tasks wait for, and what people tell them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output
from treadle.cli.output import Column, Record
from treadle.errors import IllegalTransition, InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle

OPEN = [
    Column("id", "id", output.short),
    Column("task", "task_id", output.short),
    Column("of", "of", extra=True),
    Column("asked", "opened_at", output.ago, extra=True),
    Column("expires", "expires_at", output.ago),
    Column("answered", "answered"),
    Column("options", "options"),
    Column("question", "asks"),
]
ALL = [OPEN[0], Column("status", "status", output.state), *OPEN[1:]]
VERDICTS = [Column("id", "id"), Column("verdict", "verdict")]
WaitId = Annotated[
    str, typer.Argument(metavar="WAIT", help="Wait id, or its last 6 or more characters.")
]


def waits(
    everything: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    task: Annotated[str | None, typer.Option(metavar="ID", help="Only of this task.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List what tasks wait for: answers of people, and events.

    \b
    Examples:
      treadle waits
      treadle waits --all --task 9f3a21c4
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        db = app.db
        found = await db.tasks.find(task.lstrip("….")) if task is not None else None
        return await db.waits.list(ended=everything, task_id=found, limit=limit)

    rows = [with_times(row) for row in common.call(work, database_url)]
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["id"])
        return
    if not as_json:
        rows = [{**row, **wait_summary(row)} for row in rows]
    output.show(
        rows, ALL if everything else OPEN, as_json=as_json, empty="no task waits for anybody"
    )


def answer(
    wait: WaitId,
    value: Annotated[
        str | None,
        typer.Argument(metavar="[VALUE]", help="An option, text, or JSON; asked for when absent."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who answers; else the database login.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="Why; it is kept.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Answer a question that a task waits for.

    \b
    Examples:
      treadle answer 9f3a21c4 approve --by alice --note "looks good"
      treadle answer 9f3a21c4 '{"amount": 12.5}'
      treadle answer 9f3a21c4                   shows the question and asks

    Exit code 3: no such question. 4: it has an answer already, or nobody waits for it any more.
    """
    asked: Any = None
    if value is None:
        if as_json or not sys.stdin.isatty():
            raise InvalidArgument(
                "no answer is given, and there is no terminal to ask at",
                hint="See the question and its options: treadle waits",
            )
        asked = _ask(common.call(lambda app: _find(app, wait), database_url))

    async def work(app: Treadle) -> tuple[dict[str, Any], str]:
        row = await _find(app, wait)
        given = asked if value is None else _meant(row, value)
        verdict = await app.answer(row["id"], given, by=by, note=note)
        return await app.db.waits.get(row["id"]), verdict

    row, verdict = common.call(work, database_url)
    if as_json:
        output.document({"verdict": verdict, **with_times(row)})
        return
    decided = row["status"] != "open"
    said = "decided" if decided else f"recorded ({_votes(row)} of {row['approvers']})"
    word = f"already {said}" if verdict == "already" else said
    output.show([{"id": row["id"], "verdict": word}], VERDICTS, as_json=False)


def emit(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="What happened: invoice.paid")],
    payload: Annotated[
        str, typer.Argument(metavar="[JSON]", help="More about it: JSON, @file, or - for stdin.")
    ] = "{}",
    key: Annotated[
        str, typer.Option(help="What it is about; only waits with this key get it.")
    ] = "",
    dedup_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="A second event with this key is the first.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Say that something happened; tasks that wait for it go on.

    \b
    Example:
      treadle emit invoice.paid '{"amount": 12.5}' --key 4711
    """
    document = common.json_value(payload, "payload")

    async def work(app: Treadle) -> int:
        return await app.emit(event, document, key=key, dedup_key=dedup_key)

    event_id = common.call(work, database_url)
    if as_json:
        output.document({"id": event_id})
    elif output.console().is_terminal:
        output.console().print(output.plain(f"{event_id}  emitted"))
    else:
        typer.echo(event_id)


def wait_summary(wait: Record) -> dict[str, Any]:
    """A wait for people: what it asks, of what task, who has answered, and when it expires."""
    return {
        "asks": wait["question"] or f"event {wait['event']} {wait['event_key']}".rstrip(),
        "of": wait["title"] or wait["task_name"] or wait["type"],
        "answered": _answered(wait),
        "expires_at": wait["expires_at"] if wait["status"] == "open" else None,
    }


def with_times(wait: Record) -> dict[str, Any]:
    """The answers come as JSON from the server, with times in the zone of the session."""
    answers = [{**each, "at": datetime.fromisoformat(each["at"])} for each in wait["answers"]]
    return {**wait, "answers": answers}


async def _find(app: Treadle, text: str) -> dict[str, Any]:
    db = app.db
    found: UUID = await db.waits.find(text.lstrip("…."))
    return await db.waits.get(found)


def _meant(wait: Record, text: str) -> Any:
    """The value that a text on the command line stands for: an option as it is, else JSON."""
    return text if text in (wait["options"] or []) else common.json_or_text(text)


def _votes(wait: Record) -> int:
    """How many agree, of those who have answered."""
    counts = Counter(json.dumps(each["value"], sort_keys=True) for each in wait["answers"])
    return max(counts.values(), default=0)


def _answered(wait: Record) -> str | None:
    if wait["status"] == "answered":
        return f"{output.flat(wait['answer'])} by {wait['answered_by'] or 'nobody: it expired'}"
    if wait["kind"] == "event" or wait["status"] != "open":
        return None
    names = ", ".join(each["actor"] for each in wait["answers"])
    if not names and wait["approvers"] == 1:
        return None
    count = f"{_votes(wait)} of {wait['approvers']}"
    return f"{count}: {names}" if names else count


def _ask(wait: Record) -> Any:
    """Show the question and ask for an answer, at a terminal."""
    from rich.prompt import Prompt

    terminal = output.console()
    told = wait_summary(wait)
    terminal.print(output.plain(told["asks"], "bold"))
    terminal.print(output.plain(f"asked by {told['of']}, {output.ago(wait['opened_at'])}"))
    for name in ("context", "schema"):
        if wait[name] is not None:
            shown = json.dumps(wait[name], indent=2, ensure_ascii=False)
            terminal.print(output.plain(f"{name}: {shown}"))
    for each in wait["answers"]:
        why = f": {each['note']}" if each["note"] else ""
        said = f"{each['actor']} said {output.flat(each['value'])}{why}"
        terminal.print(output.plain(said, "bright_black"))
    if wait["status"] != "open":
        raise IllegalTransition(
            f"wait {wait['id']} is {wait['status']}", hint="See who said what: treadle waits --all"
        )
    if wait["kind"] == "event":
        raise InvalidArgument(
            f"wait {wait['id']} is for an event, not for an answer",
            hint=f"Emit it: treadle emit {wait['event']} --key '{wait['event_key']}'",
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
