"""`treadle agents`: who works, and who should stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, out
from treadle.cli.out import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

agents = common.group(
    """See who works; drain an agent before its host goes.

    \b
    Example:
      treadle agents drain host-3
    """
)

AgentId = Annotated[str, typer.Argument(metavar="ID", help="The agent's id.")]

COLUMNS = [
    Column("agent", "agent_id"),
    Column("status", "status", out.state),
    Column("alive", "alive"),
    Column("heartbeat", "heartbeat_at", out.ago),
    Column("tasks", "current_tasks", right=True),
    Column("failed_1h", "failed_1h", right=True, extra=True),
    Column("queues", "queues"),
    Column("types", "task_types", extra=True),
    Column("capabilities", "capabilities", extra=True),
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
    out.show(shown, COLUMNS, as_json=as_json, empty=empty)


@agents.command()
def drain(agent: AgentId, database_url: common.DatabaseUrl = None) -> None:
    """Let an agent finish what it has, claim nothing more, and stop.

    \b
    Example:
      treadle agents drain host-3
    """
    _set(agent, "draining", database_url)


@agents.command()
def activate(agent: AgentId, database_url: common.DatabaseUrl = None) -> None:
    """Let an agent claim again.

    \b
    Example:
      treadle agents activate host-3
    """
    _set(agent, "active", database_url)


@agents.command()
def offline(agent: AgentId, database_url: common.DatabaseUrl = None) -> None:
    """Say that an agent is gone; its claims end with their leases.

    \b
    Example:
      treadle agents offline host-3
    """
    _set(agent, "offline", database_url)


async def _read(app: Treadle) -> list[dict[str, object]]:
    return await (await app.reader()).agents()


def _set(agent: str, status: str, database_url: str | None) -> None:
    async def work(app: Treadle) -> None:
        await (await app.gateway()).set_agent_status(agent, status)

    common.call(work, database_url)
    common.note(f"agent {agent} is {status}")
