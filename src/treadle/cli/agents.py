"""`treadle agents`: workers, and agents that the dispatcher sends tasks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun, add_create_and_update, add_delete
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.db.database import Database

agents = Noun(
    "agents",
    """List agents; drain one before its host stops; register agents that tasks are sent to.

    \b
    Examples:
      treadle agents drain host-3
      treadle agents create coder-1 --url https://coder-1.example.org
    """,
)

AgentId = Annotated[str, typer.Argument(metavar="ID", help="Agent id.")]

COLUMNS = [
    Column("agent", "agent_id"),
    Column("status", "status", output.state),
    Column("alive", "alive"),
    Column("heartbeat", "heartbeat_at", output.ago),
    Column("tasks", "current_tasks", right=True),
    Column("failed_1h", "failed_1h", right=True, extra=True),
    Column("queues", "queues"),
    Column("types", "task_types", extra=True),
    Column("capabilities", "capabilities", extra=True),
]

PUSH = [
    Column("agent", "agent_id"),
    Column("url", "url"),
    Column("allow_private", "allow_private"),
    Column("status", "status", output.state),
    Column("last_answer", "answered_at", output.ago),
    Column("task", "queue_id"),
    Column("last_outcome", "last_outcome"),
    Column("last_error", "last_error", extra=True),
]


@agents.verb("list")
def list_agents(
    everyone: Annotated[
        bool, typer.Option("--all", help="Include agents that are offline.")
    ] = False,
    push: Annotated[
        bool, typer.Option("--push", help="List the agents that tasks are sent to.")
    ] = False,
) -> None:
    """List agents with their heartbeats and current tasks.

    \b
    Examples:
      treadle agents list --all
      treadle agents list --push
    """
    if push:
        rows = common.call_db(lambda db: db.agents.list_push())
        empty = "no agent is registered; register one: treadle agents create --help"
        output.show(rows, PUSH, empty=empty)
        return
    rows = common.call_db(lambda db: db.agents.list())
    shown = [row for row in rows if everyone or row["alive"]]
    empty = "no agent is alive; start a worker: treadle worker my_module:app"
    output.show(shown, COLUMNS, empty=empty)


@agents.verb()
def drain(agent: AgentId) -> None:
    """Let an agent finish its tasks, claim no more, and stop.

    \b
    Example:
      treadle agents drain host-3
    """
    _set_status(agent, "draining")


@agents.verb()
def activate(agent: AgentId) -> None:
    """Let a draining or offline agent claim tasks again.

    \b
    Example:
      treadle agents activate host-3
    """
    _set_status(agent, "active")


@agents.verb()
def offline(agent: AgentId) -> None:
    """Mark an agent as offline; its claims end with their leases.

    \b
    Example:
      treadle agents offline host-3
    """
    _set_status(agent, "offline")


def _set_status(agent: str, status: str) -> None:
    common.call_db(lambda db: db.agents.set_status(agent, status))
    output.print_done(f"agent {agent} is {status}", name=agent, status=status)


def push_settings(
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Base URL: https://…")],
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow an address of a private network.")
    ] = False,
) -> tuple[str, bool]:
    """The URL of an agent, and whether it may be private."""
    from treadle.services.outbound import check_public_url

    if not allow_private:
        check_public_url(url)
    return url, allow_private


async def _define(db: Database, agent: str, given: tuple[str, bool]) -> tuple[bool, None]:
    url, allow_private = given
    return await db.agents.define_push(agent, url, allow_private=allow_private), None


def _print_defined(agent: str, verb: str, _: None) -> None:
    text = f"agent {agent} is {verb}; send tasks to it: treadle dispatcher"
    output.print_done(text, name=agent, status=verb)


add_create_and_update(
    agents,
    "agent",
    _define,
    push_settings,
    create="""Register an agent that the dispatcher sends tasks to.

    \b
    Examples:
      treadle agents create coder-1 --url https://coder-1.example.org
      treadle agents create coder-2 --url http://10.0.0.7:9000 --allow-private

    An agent gets one task at a time, from queue push. Addresses of private networks need
    --allow-private; addresses of cloud metadata services are always rejected.
    """,
    update="""Change the URL of an agent that the dispatcher sends tasks to.

    \b
    Example:
      treadle agents update coder-1 --url https://coder-1.example.org
    """,
    done=_print_defined,
    argument=AgentId,
)
add_delete(
    agents,
    "agent",
    lambda db, name: db.agents.remove_push(name),
    text="Stop sending tasks to an agent; its current task is followed to its end.",
    example="coder-2",
)
