"""`treadle dags`: create, list, show, start, cancel and retry DAGs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output
from treadle.cli.dags import view
from treadle.cli.nouns import Noun
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.db.dags import CreatedDag
    from treadle.db.database import Database

dags = Noun(
    "dags",
    """Create, list, show, start, cancel and retry DAGs: tasks that depend on each other.

    \b
    Example:
      treadle dags create plan.yaml
    """,
)

STATES = ["open", "running", "failed", "completed", "cancelled"]
REFRESH_S = 1.0
DagId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="DAG id, or its last 6 or more characters.",
        parser=common.strip_ellipsis,
    ),
]
COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("progress", "progress", view.progress),
    Column("dead_letters", "dead_lettered", right=True, extra=True),
    Column("open_waits", "open_waits", right=True, extra=True),
    Column("cost", "cost_usd", view.dollars, right=True, extra=True),
    Column("duration", "duration_s", output.length, right=True, extra=True),
    Column("created", "created_at", output.ago),
    Column("name", "name"),
]


@dags.verb("list")
def list_dags(
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only with this status.")
    ] = None,
    limit: common.Limit = 50,
    ids_only: common.IdsOnly = False,
) -> None:
    """List DAGs with their progress, newest first.

    \b
    Example:
      treadle dags list --status failed
    """
    if status is not None and status not in STATES:
        raise InvalidArgument(
            f"there is no status {status!r}", hint=common.did_you_mean(status, STATES)
        )
    rows = common.call_db(lambda db: db.dags.list(status=status, limit=limit))
    if common.options.json:
        output.document({"items": rows})
        return
    if ids_only:
        output.print_ids(rows)
        return
    for row in rows:
        row["progress"] = f"{row['completed']}/{row['tasks']}"
    output.show(rows, COLUMNS, empty="no DAG matches; create one: treadle dags create --help")


@dags.verb()
def show(
    dag_id: DagId,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh until the DAG has ended.")
    ] = False,
) -> None:
    """Show a DAG: its progress, its tasks and their dependencies.

    \b
    Examples:
      treadle dags show 9f3a21c4
      treadle dags show 9f3a21c4 --mermaid > plan.mmd

    Tasks are drawn below their dependencies; a dashed line is an optional dependency. DAGs of over
    200 tasks are summarised by level.
    """
    if mermaid + watch + common.options.json > 1:
        raise InvalidArgument("use only one of --json, --mermaid and --watch")
    if watch and not output.console().is_terminal:
        raise InvalidArgument(
            "--watch needs a terminal", hint=f"Poll it: treadle dags show {dag_id} --json"
        )

    async def read(db: Database) -> None:
        found = await db.dags.find(dag_id)
        if watch:
            await _watch(db, found)
            return
        row, tasks = await db.dags.get(found), await db.dags.tasks(found)
        if common.options.json:
            output.document({**row, "nodes": tasks})
        elif mermaid:
            from treadle.cli.dags.graph import flowchart

            typer.echo("\n".join(flowchart(tasks)))
        else:
            terminal = output.console()
            for line in view.view().lines(row, tasks):
                terminal.print(line, no_wrap=True, overflow="ignore", crop=False)

    common.call_db(read)


async def _watch(db: Database, dag_id: UUID) -> None:
    import anyio
    from rich.console import Group
    from rich.live import Live

    with Live(console=output.console(), auto_refresh=False) as live:
        while True:
            row, tasks = await db.dags.get(dag_id), await db.dags.tasks(dag_id)
            live.update(Group(*view.view().lines(row, tasks)), refresh=True)
            if row["ended_at"] is not None:
                return
            await anyio.sleep(REFRESH_S)


@dags.verb()
def create(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Plan: a .json or .yaml file, or - for stdin.")
    ],
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Idempotency key: reusing it returns the existing DAG."),
    ] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Do not start it; start it with treadle dags start.")
    ] = False,
) -> None:
    """Create a DAG from a file in one transaction and print its id.

    \b
    Examples:
      treadle dags create examples/landing_page.yaml
      jq '.name = "again"' plan.json | treadle dags create - --key again-1

    YAML needs the extra treadle[yaml]. The file has the format of treadle.create_dag.
    """
    from treadle.cli.dags.plan_file import read_plan

    plan = read_plan(file)
    if key is not None:
        plan["key"] = key

    async def work(db: Database) -> CreatedDag:
        from treadle.json import encode
        from treadle.producer.dag import dag_document

        whole = dag_document(plan.pop("name"), {**plan, "hold": hold})
        return await db.dags.create(encode(whole, name="dag"))

    dag_id, created, ids, _ = common.call_db(work)
    text = f"{'created' if created else 'exists already'}, {len(ids)} tasks"
    output.print_new(dag_id, text, id=dag_id, created=created, tasks=ids)
    if output.console().is_terminal and not common.options.json:
        short = str(dag_id)[-8:]
        common.note(
            f"start it: treadle dags start {short}"
            if hold
            else f"see it: treadle dags show {short}"
        )


@dags.verb()
def start(dag_id: DagId) -> None:
    """Start a DAG that was created with --hold, or opened and filled.

    \b
    Example:
      treadle dags start 9f3a21c4
    """
    _change(dag_id, "tasks", lambda db, found: db.dags.start(found))


@dags.verb()
def cancel(dag_id: DagId, reason: common.Reason = None) -> None:
    """Cancel the tasks of a DAG that have not ended.

    \b
    Example:
      treadle dags cancel 9f3a21c4 --reason "not needed any more"
    """
    _change(dag_id, "cancelled", lambda db, found: db.dags.cancel(found, reason))


@dags.verb()
def retry(dag_id: DagId, reason: common.Reason = None) -> None:
    """Retry the dead-lettered and cancelled tasks of a DAG.

    \b
    Example:
      treadle dags retry 9f3a21c4 --reason "provider is back"
    """
    _change(dag_id, "retried", lambda db, found: db.dags.retry(found, reason))


def _change(dag_id: str, word: str, change: Callable[[Database, UUID], Awaitable[int]]) -> None:
    """Change a DAG, and print how many tasks that changed."""

    async def work(db: Database) -> dict[str, Any]:
        found = await db.dags.find(dag_id)
        return {"id": found, word: await change(db, found)}

    row = common.call_db(work)
    if common.options.json:
        output.document(row)
    else:
        output.show([row], [Column("id", "id"), Column(word, word)])
