"""`treadle doctor`: check the database, the schema, the processes and the artifact store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.output import Column
from treadle.errors import TreadleError, Unavailable

if TYPE_CHECKING:
    from treadle.db.install.checks import Check
    from treadle.settings import Settings

COLUMNS = [
    Column("check", "check"),
    Column("status", "status", output.state),
    Column("result", "found"),
]


@common.command()
def doctor(
    health_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Check only this health file of a process."),
    ] = None,
    max_age: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Longest age of the health file.")
    ] = 60.0,
) -> None:
    """Check the database, the schema, the processes and the artifact store.

    \b
    Examples:
      treadle doctor
      treadle doctor --health-file /run/treadle/health --max-age 60

    Exit code 1: a check failed. 6: the database does not respond.
    """
    common.quiet_logs()
    code = 0
    if health_file is not None:
        checks = [_health(health_file, max_age)]
    else:
        checks, code = _database()
    rows = [
        {"check": c.check, "status": c.status, "found": c.found, "todo": c.todo} for c in checks
    ]
    good = all(check.status != "fail" for check in checks)
    if common.options.json:
        output.document({"ok": good, "items": rows})
    elif output.console().is_terminal:
        _print(checks)
    else:
        output.show(rows, [*COLUMNS, Column("action", "todo")])
    if not good:
        raise typer.Exit(code or 1)


def _print(checks: "list[Check]") -> None:
    """Print results and actions in full; the terminal wraps them."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("STATUS", "CHECK", "RESULT"):
        table.add_column(title, no_wrap=title != "RESULT")
    for check in checks:
        found = output.plain(check.found)
        if check.todo and check.status != "ok":
            found.append(f"\n→ {common.printable(check.todo)}", style="bold")
        table.add_row(output.state(check.status), output.plain(check.check), found)
    output.console().print(table)


def _health(path: Path, max_age: float) -> "Check":
    from treadle.db.install.checks import Check
    from treadle.process import read_health_file

    try:
        facts = read_health_file(path, max_age)
    except TreadleError as error:
        todo = "Is the process running, and does it have this --health-file?"
        return Check("health", "fail", str(error), todo)
    return Check("health", "ok", ", ".join(f"{name} {value}" for name, value in facts.items()))


def _store(settings: "Settings") -> "list[Check]":
    """Check the artifact store; a default folder that does not exist yet is not created."""
    from treadle.artifacts.store import make_store
    from treadle.db.install.checks import Check

    try:
        store = make_store(settings)
        if settings.artifacts_url is None and store.folder and not store.folder.is_dir():
            return []
        common.run(store.check())
    except TreadleError as error:
        return [Check("artifacts", "fail", str(error), error.hint)]
    return [Check("artifacts", "ok", f"a file was written to {store.url}, read and deleted")]


def _database() -> "tuple[list[Check], int]":
    from treadle.db.install.checks import Check, examine
    from treadle.settings import load_settings

    checks: list[Check] = []
    try:
        with common.database() as url:
            settings = load_settings()
            listen_url = (settings.listen_url or url) if settings.notify else None
            checks.extend(examine(url, listen_url=listen_url))
            checks.extend(_store(settings))
    except Unavailable as error:
        return [*checks, Check("connection", "fail", str(error), error.hint)], error.exit_code
    return checks, 0
