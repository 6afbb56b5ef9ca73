"""Agents: workers, and agents that prompts are sent to; reached as `db.agents`."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.json import encode
from treadle.models import AgentProfile


class Agents:
    """Register agents, keep their status and list them."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def register(self, agent: AgentProfile) -> None:
        await self._calls.call(
            """
            select treadle.register_agent(
              p_id => %b, p_type => %b, p_capabilities => %b, p_models => %b, p_queues => %b,
              p_task_types => %b, p_max_concurrent_tasks => %b, p_heartbeat_s => %b,
              p_claim_ttl_s => %b, p_meta => %b
            )
            """,
            agent.id,
            agent.type,
            agent.capabilities,
            agent.models,
            agent.queues,
            agent.task_types,
            agent.max_concurrent_tasks,
            agent.heartbeat_s,
            agent.claim_ttl_s,
            RawJson(encode(agent.meta)),
        )

    async def heartbeat(self, agent: str) -> str:
        rows = await self._calls.call("select treadle.agent_heartbeat(%b)", agent)
        return str(rows[0][0])

    async def set_status(self, agent: str, status: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.set_agent_status(%b, %b, %b)", agent, status, actor)

    async def mark_silent(self) -> list[str]:
        rows = await self._calls.call("select * from treadle.mark_silent_agents() as gone (id)")
        return [row[0] for row in rows]

    async def define_push(
        self, agent: str, url: str, *, allow_private: bool = False, actor: str | None = None
    ) -> None:
        await self._calls.call(
            "select treadle.define_push_agent(%b, %b, %b, %b)", agent, url, allow_private, actor
        )

    async def remove_push(self, agent: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_push_agent(%b, %b)", agent, actor)

    async def seen(self, agents: Iterable[str]) -> None:
        await self._calls.call("select treadle.seen_agents(%b::text[])", list(agents))

    async def page(
        self,
        *,
        only: str | None = None,
        queues: list[str] | None = None,
        agent: str | None = None,
        project_id: UUID | None = None,
        after: str | None = None,
        limit: int,
    ) -> list[Record]:
        """Agents by id, or only one; with queues, an agent or a project: those it concerns.

        An agent concerns a project that it has, or is to have, a task of.
        """
        return await self._calls.page(
            "agent_load",
            key="agent_id",
            after=after,
            limit=limit,
            where={
                "agent_id = {}": only,
                "queues && {}": queues,
                # Not "agent_id = {}", which is the first condition.
                "agent_id in ({})": agent,
                "agent_id in (select places.agent from treadle.task_places as places"
                " where project_id = {})": project_id,
            },
        )

    async def queues(self, agent_id: str) -> list[str] | None:
        """The queues of an agent; None when it is not registered."""
        found = await self._calls.rows(
            "select queues from treadle.agent_load where agent_id = %(id)s", {"id": agent_id}
        )
        return found[0]["queues"] if found else None

    async def list_push(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            'select * from treadle.push_agent_status order by agent_id collate "C"'
        )

    async def list(self) -> list[Record]:
        return await self._calls.rows(
            "select * from treadle.agent_load order by alive desc, heartbeat_at desc"
        )
