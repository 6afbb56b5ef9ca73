"""Queues, types and agents, and the calls of the reaper and the promoter."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.json import encode
from treadle.models import AgentProfile, Promoted, Reaped


class TendingCalls(Calls):
    """What keeps the house in order while tasks come and go."""

    async def declare_types(self, types: Mapping[str, Any], queues: Iterable[str]) -> None:
        await self._call(
            "select treadle.declare_types(%b, %b)", RawJson(encode(types)), sorted(set(queues))
        )

    async def define_queue(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> None:
        document = RawJson(encode(settings, name="settings"))
        await self._call("select treadle.define_queue(%b, %b, %b)", name, document, actor)

    async def pause_queue(self, name: str, reason: str | None, actor: str | None = None) -> None:
        await self._call("select treadle.pause_queue(%b, %b, %b)", name, reason, actor)

    async def resume_queue(self, name: str, actor: str | None = None) -> None:
        await self._call("select treadle.resume_queue(%b, %b)", name, actor)

    async def register_agent(self, agent: AgentProfile) -> None:
        await self._call(
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

    async def agent_heartbeat(self, agent: str) -> str:
        rows = await self._call("select treadle.agent_heartbeat(%b)", agent)
        return str(rows[0][0])

    async def set_agent_status(self, agent: str, status: str, actor: str | None = None) -> None:
        await self._call("select treadle.set_agent_status(%b, %b, %b)", agent, status, actor)

    async def reap_claims(self, limit: int, skip: Iterable[UUID]) -> list[Reaped]:
        rows = await self._call(
            "select id, reason, status, problem from treadle.reap_claims(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Reaped(*row) for row in rows]

    async def mark_silent_agents(self) -> list[str]:
        rows = await self._call("select * from treadle.mark_silent_agents() as gone (id)")
        return [row[0] for row in rows]

    async def next_reap_at(self) -> float | None:
        return await self._seconds_until("treadle.next_reap_at()")

    async def promote_tasks(self, limit: int, skip: Iterable[UUID]) -> list[Promoted]:
        rows = await self._call(
            "select id, problem from treadle.promote_tasks(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Promoted(*row) for row in rows]

    async def next_due_at(self) -> float | None:
        return await self._seconds_until("treadle.next_due_at()")
