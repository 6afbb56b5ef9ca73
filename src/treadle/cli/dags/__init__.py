"""`treadle dag`: make, list, show, start, cancel and retry tasks that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output
from treadle.cli.dags import view
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.dags import CreatedDag

dag = common.group(
    """Make, list, show, start, cancel and retry DAGs: tasks that wait for each other.

    \b
    Example:
      treadle dag create plan.yaml
    """
)

STATES = ["open", "running", "failed", "completed", "cancelled"]
WATCH_S = 1.0
DagId = Annotated[
    str, typer.Argument(metavar="ID", help="DAG id, or its last 6 or more characters.")
]
Why = Annotated[str | None, typer.Option(help="Why; it is kept.")]


COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("progress", "progress", view.progress),
    Column("dead", "dead_lettered", right=True, extra=True),
    Column("waits", "open_waits", right=True, extra=True),
    Column("cost", "cost_usd", view.dollars, right=True, extra=True),
    Column("took", "duration_s", output.length, right=True, extra=True),
    Column("created", "created_at", output.ago),
    Column("name", "name"),
]


@dag.command()
def create(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The plan: .json, .yaml, or - for stdin.")
    ],
    key: Annotated[
        str | None, typer.Option(help="A second DAG with this key is the first one.")
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Do not start it: see dag start.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a DAG from a file, all of it or nothing, and print its id.

    \b
    Examples:
      treadle dag create examples/landing_page.yaml
      jq '.name = "again"' plan.json | treadle dag create - --key again-1
    """
    from treadle.cli.dags.plan_file import read_plan

    plan = read_plan(file)
    if key is not None:
        plan["key"] = key

    async def work(app: Treadle) -> CreatedDag:
        from treadle.json import encode
        from treadle.producer.dag import dag_document

        whole = dag_document(plan.pop("name"), {**plan, "hold": hold})
        return await app.db.dags.create(encode(whole, name="dag"))

    dag_id, created, ids = common.call(work, database_url)
    if as_json:
        output.document({"id": dag_id, "created": created, "tasks": ids})
    elif output.console().is_terminal:
        done = "made" if created else "was there already"
        then = f"start it: treadle dag start {str(dag_id)[-8:]}" if hold else ""
        output.console().print(output.plain(f"{dag_id}  {done}, {len(ids)} tasks"))
        common.note(then or f"see it: treadle dag show {str(dag_id)[-8:]}")
    else:
        typer.echo(dag_id)


@dag.command("list")
def list_dags(
    status: Annotated[str | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List DAGs with how far they are, the newest first.

    \b
    Example:
      treadle dag list --status failed
    """
    if status is not None and status not in STATES:
        raise InvalidArgument(
            f"there is no state {status!r}", hint=common.did_you_mean(status, STATES)
        )

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.dags.list(status=status, limit=limit)

    rows = common.call(work, database_url)
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["id"])
        return
    if not as_json:
        for row in rows:
            row["progress"] = f"{row['completed']}/{row['tasks']}"
    output.show(rows, COLUMNS, as_json=as_json, empty="no DAG matches")


@dag.command()
def show(
    dag_id: DagId,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid flowchart instead.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep it up to date until the DAG has ended.")
    ] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a DAG: how far it is, its tasks and how they depend on each other.

    \b
    Examples:
      treadle dag show 9f3a21c4
      treadle dag show 9f3a21c4 --mermaid > plan.mmd
    """
    if mermaid + watch + as_json > 1:
        raise InvalidArgument("--json, --mermaid and --watch do not go together")
    if watch and not output.console().is_terminal:
        raise InvalidArgument("--watch needs a terminal", hint="Poll it: treadle dag show --json")

    async def work(app: Treadle) -> None:
        db = app.db
        found = await db.dags.find(dag_id.lstrip("…."))
        if watch:
            await _watch(app, found)
            return
        row, tasks = await db.dags.get(found), await db.dags.tasks(found)
        if as_json:
            output.document({**row, "nodes": tasks})
        elif mermaid:
            from treadle.cli.dags.graph import flowchart

            typer.echo("\n".join(flowchart(tasks)))
        else:
            terminal = output.console()
            for line in view.view().lines(row, tasks):
                terminal.print(line, no_wrap=True, overflow="ignore", crop=False)

    common.call(work, database_url)


@dag.command()
def start(
    dag_id: DagId, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let the tasks of a DAG run that was made with --hold, or opened and filled.

    \b
    Example:
      treadle dag start 9f3a21c4
    """

    async def work(app: Treadle) -> tuple[UUID, int]:
        found = await app.db.dags.find(dag_id.lstrip("…."))
        return found, await app.db.dags.start(found)

    _counted(common.call(work, database_url), "tasks", as_json=as_json)


@dag.command()
def cancel(
    dag_id: DagId,
    reason: Why = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Cancel what has not ended of a DAG.

    \b
    Example:
      treadle dag cancel 9f3a21c4 --reason "not needed any more"
    """

    async def work(app: Treadle) -> tuple[UUID, int]:
        found = await app.db.dags.find(dag_id.lstrip("…."))
        return found, await app.db.dags.cancel(found, reason)

    _counted(common.call(work, database_url), "cancelled", as_json=as_json)


@dag.command()
def retry(
    dag_id: DagId,
    note: Why = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run again what gave up or was cancelled in a DAG; what is completed stays.

    \b
    Example:
      treadle dag retry 9f3a21c4 --note "provider is back"
    """

    async def work(app: Treadle) -> tuple[UUID, int]:
        found = await app.db.dags.find(dag_id.lstrip("…."))
        return found, await app.db.dags.retry(found, note)

    _counted(common.call(work, database_url), "retried", as_json=as_json)


async def _watch(app: Treadle, dag_id: UUID) -> None:
    import anyio
    from rich.console import Group
    from rich.live import Live

    db = app.db
    with Live(console=output.console(), auto_refresh=False) as live:
        while True:
            row, tasks = await db.dags.get(dag_id), await db.dags.tasks(dag_id)
            live.update(Group(*view.view().lines(row, tasks)), refresh=True)
            if row["ended_at"] is not None:
                return
            await anyio.sleep(WATCH_S)


def _counted(done: tuple[UUID, int], word: str, *, as_json: bool) -> None:
    dag_id, count = done
    if as_json:
        output.document({"id": dag_id, word: count})
    else:
        output.show(
            [{"id": dag_id, word: count}], [Column("id", "id"), Column(word, word)], as_json=False
        )
