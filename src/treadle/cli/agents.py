"""`treadle agents`: who works, and who should stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

agents = common.group(
    """See who works; add agents that tasks are sent to; drain one before its host goes.

    \b
    Examples:
      treadle agents drain host-3
      treadle agents add coder-1 --url https://coder-1.example.org
    """
)

AgentId = Annotated[str, typer.Argument(metavar="ID", help="The agent's id.")]

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

PUSHED = [
    Column("agent", "agent_id"),
    Column("url", "url"),
    Column("private", "allow_private"),
    Column("status", "status", output.state),
    Column("answered", "answered_at", output.ago),
    Column("has", "queue_id"),
    Column("last", "last_outcome"),
    Column("error", "last_error", extra=True),
]


@agents.command("list")
def list_agents(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List the agents that are there, with what they are doing.

    \b
    Example:
      treadle agents list --all
    """
    rows = common.call(_read, database_url)
    shown = [row for row in rows if everyone or row["alive"]]
    empty = "no agent is there; start one: treadle worker my_module:app"
    output.show(shown, COLUMNS, as_json=as_json, empty=empty)


@agents.command()
def drain(
    agent: AgentId, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let an agent finish what it has, claim nothing more, and stop.

    \b
    Example:
      treadle agents drain host-3
    """
    _set(agent, "draining", database_url, as_json=as_json)


@agents.command()
def activate(
    agent: AgentId, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let an agent claim again.

    \b
    Example:
      treadle agents activate host-3
    """
    _set(agent, "active", database_url, as_json=as_json)


@agents.command()
def offline(
    agent: AgentId, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Say that an agent is gone; its claims end with their leases.

    \b
    Example:
      treadle agents offline host-3
    """
    _set(agent, "offline", database_url, as_json=as_json)


@agents.command()
def add(
    agent: AgentId,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where its interface is: https://…")
    ],
    allow_private: Annotated[
        bool,
        typer.Option("--allow-private", help="Its address may be one of a network of your own."),
    ] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Add an agent that the dispatcher sends tasks to, or change where it is.

    \b
    Examples:
      treadle agents add coder-1 --url https://coder-1.example.org
      treadle agents add coder-2 --url http://10.0.0.7:9000 --allow-private

    It gets one task at a time, from queue push. Addresses of a network of your own are connected
    to with --allow-private only; those of cloud metadata never.
    """
    from treadle.services.outbound import check_public_url

    if not allow_private:
        check_public_url(url)
    common.call_db(
        lambda db: db.agents.define_push(agent, url, allow_private=allow_private),
        database_url,
    )
    text = f"agent {agent} is added; tasks are sent to it by: treadle dispatcher"
    output.print_done(text, as_json, name=agent, status="added")


@agents.command()
def remove(
    agent: AgentId,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Send nothing more to an agent; what it has is followed to its end.

    \b
    Example:
      treadle agents remove coder-2 --yes
    """
    common.confirm(f"remove agent {agent}", yes=yes)
    common.call_db(lambda db: db.agents.remove_push(agent), database_url)
    output.print_done(f"agent {agent} is removed", as_json, name=agent, status="removed")


@agents.command()
def push(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the agents that tasks are sent to, in the order in which they are asked.

    \b
    Example:
      treadle agents push --json
    """

    async def work(app: Treadle) -> list[dict[str, object]]:
        return await app.db.agents.list_push()

    empty = "tasks are sent to nobody; add an agent: treadle agents add --help"
    output.show(common.call(work, database_url), PUSHED, as_json=as_json, empty=empty)


async def _read(app: Treadle) -> list[dict[str, object]]:
    return await app.db.agents.list()


def _set(agent: str, status: str, database_url: str | None, *, as_json: bool) -> None:
    common.call_db(lambda db: db.agents.set_status(agent, status), database_url)
    output.print_done(f"agent {agent} is {status}", as_json, name=agent, status=status)
