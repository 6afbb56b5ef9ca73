"""`treadle harness`: act on the decisions of agents; see what was done, and decide what is open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from uuid import UUID

    from treadle.app import Treadle
    from treadle.services.harness import Callback

ACTIONS = [
    Column("task", "task_id"),
    Column("agent", "agent_url"),
    Column("action", "action"),
    Column("tries", "action_tries", right=True),
    Column("started", "action_started_at", output.ago),
    Column("error", "action_error", lambda text: str(text or "").split("\n", 1)[0][:60]),
]
NUDGED = [
    Column("agent", "agent_url"),
    Column("private", "allow_private", lambda value: "yes" if value else ""),
    Column("seen", "last_seen_at", output.ago),
    Column("nudged", "nudged_at", output.ago),
    Column("error", "nudge_error"),
]
AgentUrl = Annotated[
    str, typer.Argument(metavar="URL", help="The agent's base URL, as it names itself.")
]
Reason = Annotated[str | None, typer.Option(help="Why; kept among the events.")]


class _Harness(TyperGroup):
    """A MODULE:FUNCTION, or an option, without the name of a command is for `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else "--help"
        if first != "--help" and (":" in first or first.startswith("-")):
            args = ["run", *args]
        return super().parse_args(ctx, args)


harness = typer.Typer(
    cls=_Harness, add_completion=False, no_args_is_help=True, rich_markup_mode=None
)


@harness.callback()
def _harness() -> None:
    """Act on the decisions of agents, nudge agents, requeue what is stale.

    \b
    Examples:
      treadle harness my_module:act
      treadle harness actions --status interrupted
      treadle harness again 0198f3c2-7d1e-7b2a-9c3d-4e5f60718293
      treadle harness allow http://localhost:9000 --allow-private

    `treadle harness MODULE:FUNCTION` is short for `treadle harness run MODULE:FUNCTION`.
    """


@harness.command()
def run(
    callback: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Called with (task, decision).")
    ],
    drain_every: Annotated[
        float | None, typer.Option(metavar="S", help="Look for results so often; else 10.")
    ] = None,
    requeue_every: Annotated[
        float | None,
        typer.Option(metavar="S", help="Look for claims that ran out so often; else 60."),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="Callbacks to run at once; else 4.")
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tries of a callback that fails; else 3."),
    ] = None,
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run the harness: each decision is handed to the callback once.

    \b
    Examples:
      treadle harness run my_module:act
      treadle harness my_module:act --drain-every 2 --slots 1

    A plain function runs in a thread, an async one on the event loop. One that raises gets the
    decision again, later. Any number may run; SIGTERM ends it after the callbacks under way.
    """
    common.process_logs(log_format, log_level)
    from treadle.cli.loader import load_function
    from treadle.cli.worker import leave_threads
    from treadle.settings import load_settings

    settings = load_settings(
        database_url=database_url or common.given.database_url,
        harness_drain_s=drain_every,
        harness_requeue_s=requeue_every,
        harness_slots=slots,
        harness_tries=tries,
    )
    found = load_function(callback)
    path = common.health_path(health_file)
    with common.database(database_url) as url:
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(_serve(url, settings, found, path), fast=True)
    leave_threads()


async def _serve(url: str, settings: Any, callback: Callback, health_file: Path | None) -> None:
    from treadle.app import Treadle
    from treadle.services.harness import Harness

    app = Treadle(url, settings=settings)
    async with app.service(Harness, health_file=health_file, signals=True) as service:
        assert isinstance(service, Harness)
        service.callback = callback
        await service.run()


@harness.command()
def actions(
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help="executing, waiting, done, failed, interrupted or skipped; else all.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="So many.")] = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List what the harness did with decisions, the newest first.

    \b
    Example:
      treadle harness actions --status interrupted
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.harness.actions(status, limit)

    output.show(common.call(work, database_url), ACTIONS, as_json=as_json, empty="no action")


@harness.command()
def again(
    task: common.TaskId,
    reason: Reason = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Have an action executed again that failed or was interrupted.

    \b
    Example:
      treadle harness again 0198f3c2-7d1e-7b2a-9c3d-4e5f60718293 --reason "no comment was posted"

    Look first whether it took effect: nothing here can know.
    """

    async def work(app: Treadle) -> UUID:
        task_id = await app.db.tasks.find(task)
        await app.db.harness.rerun_action(task_id, note=reason)
        return task_id

    task_id = common.call(work, database_url)
    text = "the action is executed again at the next look of the harness"
    output.print_done(text, as_json, task_id=task_id, status="waiting")


@harness.command()
def skip(
    task: common.TaskId,
    reason: Reason = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Leave an action that failed or was interrupted as it is: its task is done.

    \b
    Example:
      treadle harness skip 0198f3c2-7d1e-7b2a-9c3d-4e5f60718293 --reason "it was posted"
    """

    async def work(app: Treadle) -> UUID:
        task_id = await app.db.tasks.find(task)
        await app.db.harness.skip_action(task_id, note=reason)
        return task_id

    task_id = common.call(work, database_url)
    output.print_done("the task is done", as_json, task_id=task_id, status="skipped")


@harness.command()
def agents(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the agents that are nudged, and how that goes.

    \b
    Example:
      treadle harness agents
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.harness.nudging()

    rows = common.call(work, database_url)
    output.show(rows, NUDGED, as_json=as_json, empty="no agent is nudged; they look by themselves")


@harness.command()
def allow(
    url: AgentUrl,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Also at an address of this host or network.")
    ] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let the harness nudge an agent at its address when a task is stored for it.

    \b
    Example:
      treadle harness allow http://localhost:9000 --allow-private

    Tasks are stored and fetched without it too: a nudge saves the time until the agent looks.
    """
    from treadle.services.outbound import check_public_url

    if not allow_private:
        check_public_url(url)
    common.call_db(lambda db: db.harness.allow_nudges(url, private=allow_private), database_url)
    output.print_done(f"agent {url} is nudged", as_json, name=url, status="allowed")


@harness.command()
def forbid(
    url: AgentUrl, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Nudge an agent no longer; it finds its tasks by itself.

    \b
    Example:
      treadle harness forbid http://localhost:9000
    """
    common.call_db(lambda db: db.harness.allow_nudges(url, allow=False), database_url)
    output.print_done(f"agent {url} is not nudged any more", as_json, name=url, status="forbidden")
