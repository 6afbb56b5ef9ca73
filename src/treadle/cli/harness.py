"""`treadle harness`: run the callback for decisions of agents, and manage its actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.options import with_options
from treadle.cli.output import Column

if TYPE_CHECKING:
    from uuid import UUID

    from treadle.db.database import Database
    from treadle.services.harness import Callback

ACTIONS = [
    Column("task", "task_id"),
    Column("agent", "agent_url"),
    Column("action", "action"),
    Column("attempts", "action_tries", right=True),
    Column("started", "action_started_at", output.ago),
    Column("error", "action_error", lambda text: str(text or "").split("\n", 1)[0][:60]),
]
NUDGED = [
    Column("agent", "agent_url"),
    Column("allow_private", "allow_private"),
    Column("last_seen", "last_seen_at", output.ago),
    Column("last_nudge", "nudged_at", output.ago),
    Column("error", "nudge_error"),
]
AgentUrl = Annotated[str, typer.Argument(metavar="URL", help="Base URL of the agent.")]

harness = Noun(
    "harness",
    """Run the callback for decisions of agents, list its actions, and nudge agents.

    \b
    Examples:
      treadle harness run my_module:act
      treadle harness list --status interrupted
      treadle harness retry 9f3a21c4
    """,
)


@harness.verb(json=False)
@with_options(process=common.process_options)
def run(
    callback: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Called with (task, decision).")
    ],
    drain_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Interval for reading results; default: 10."),
    ] = None,
    requeue_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Interval for expired claims; default: 60."),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="Callbacks that run at once; default: 4.")
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option(metavar="N", help="Attempts of a callback that fails; default: 3."),
    ] = None,
    redeliver: Annotated[
        bool,
        typer.Option(
            "--redeliver", help="The callback is safe to repeat: call it again after a crash."
        ),
    ] = False,
    *,
    process: common.Process,
) -> None:
    """Run the harness, which passes each decision to the callback once.

    \b
    Examples:
      treadle harness run my_module:act
      treadle harness run my_module:act --drain-every 2 --slots 1
      treadle harness run my_module:act --redeliver

    A plain function runs in a thread, an async one on the event loop. If it raises, it is called
    again later. If the harness is killed meanwhile, an operator decides (treadle harness retry),
    unless the callback is safe to repeat. Any number of harnesses may run; SIGTERM stops one after
    its current callbacks.
    """
    from treadle.cli.worker import exit_with_threads, load_function
    from treadle.settings import load_settings

    settings = load_settings(
        database_url=common.options.database_url,
        harness_drain_s=drain_every,
        harness_requeue_s=requeue_every,
        harness_slots=slots,
        harness_tries=tries,
    )
    found = load_function(callback)
    with common.database() as url:
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(_serve(url, settings, found, redeliver, process.health_file), fast=True)
    exit_with_threads()


async def _serve(
    url: str, settings: Any, callback: Callback, redeliver: bool, health_file: Path | None
) -> None:
    from treadle.app import Treadle
    from treadle.services.harness import Harness

    app = Treadle(url, settings=settings)
    async with app.service(Harness, health_file=health_file, signals=True) as service:
        assert isinstance(service, Harness)
        service.callback = callback
        service.redeliver = redeliver
        await service.run()


@harness.verb("list")
def list_actions(
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS", help="executing, waiting, done, failed, interrupted or skipped."
        ),
    ] = None,
    limit: common.Limit = 50,
) -> None:
    """List the actions of the harness, newest first.

    \b
    Example:
      treadle harness list --status interrupted
    """
    rows = common.call_db(lambda db: db.harness.actions(status, limit))
    output.show(rows, ACTIONS, empty="no action matches")


@harness.verb()
def retry(task_id: common.TaskId, reason: common.Reason = None) -> None:
    """Run an action again that failed or was interrupted.

    \b
    Example:
      treadle harness retry 9f3a21c4 --reason "no comment was posted"

    Check first whether the action took effect: the harness cannot know.
    """
    found = _change(task_id, lambda db, each: db.harness.rerun_action(each, note=reason))
    output.print_done("the harness will run the action again", task_id=found, status="waiting")


@harness.verb()
def skip(task_id: common.TaskId, reason: common.Reason = None) -> None:
    """Complete a task without running its failed or interrupted action again.

    \b
    Example:
      treadle harness skip 9f3a21c4 --reason "it was posted"
    """
    found = _change(task_id, lambda db, each: db.harness.skip_action(each, note=reason))
    output.print_done("the action is skipped", task_id=found, status="skipped")


def _change(task_id: str, change: Callable[[Database, UUID], Awaitable[object]]) -> UUID:
    async def work(db: Database) -> UUID:
        found = await db.tasks.find(task_id)
        await change(db, found)
        return found

    return common.call_db(work)


@harness.verb()
def agents() -> None:
    """List the agents that the harness nudges, with their last errors.

    \b
    Example:
      treadle harness agents
    """
    rows = common.call_db(lambda db: db.harness.nudging())
    empty = "no agent is nudged; allow it for one: treadle harness allow --help"
    output.show(rows, NUDGED, empty=empty)


@harness.verb()
def allow(
    url: AgentUrl,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow an address of a private network.")
    ] = False,
) -> None:
    """Allow the harness to nudge an agent when a task is stored for it.

    \b
    Example:
      treadle harness allow http://localhost:9000 --allow-private

    An agent finds its tasks without nudges too, but only when it polls.
    """
    from treadle.services.outbound import check_public_url

    if not allow_private:
        check_public_url(url)
    common.call_db(lambda db: db.harness.allow_nudges(url, private=allow_private))
    output.print_done(f"agent {url} is nudged", name=url, status="allowed")


@harness.verb()
def forbid(url: AgentUrl) -> None:
    """Stop nudging an agent; it finds its tasks when it polls.

    \b
    Example:
      treadle harness forbid http://localhost:9000
    """
    common.call_db(lambda db: db.harness.allow_nudges(url, allow=False))
    output.print_done(f"agent {url} is not nudged any more", name=url, status="forbidden")
