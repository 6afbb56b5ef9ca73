"""Agents: workers, and agents that prompts are sent to; reached as `db.agents`."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
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
              p_claim_ttl_s => %b, p_meta => %b, p_budget_usd => %b::numeric,
              p_claims_ahead => %b
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
            None if agent.budget_usd is None else Decimal(str(agent.budget_usd)),
            agent.claims_ahead,
        )

    async def heartbeat(self, agent: str) -> str:
        rows = await self._calls.call("select treadle.heartbeat_agent(%b)", agent)
        return str(rows[0][0])

    async def set_status(self, agent: str, status: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.set_agent_status(%b, %b, %b)", agent, status, actor)

    async def running_services(self) -> set[str]:
        """Return the names of the services that are connected, such as `reaper`."""
        rows = await self._calls.call(
            """
            select distinct substr(application_name, 9)
            from pg_catalog.pg_stat_activity
            where datname = current_database() and starts_with(application_name, 'treadle-')
            """
        )
        return {row[0] for row in rows}

    async def mark_silent(self) -> list[str]:
        rows = await self._calls.call("select * from treadle.mark_agents_offline() as gone (id)")
        return [row[0] for row in rows]

    async def define_push(
        self, agent: str, url: str, *, allow_private: bool = False, actor: str | None = None
    ) -> bool:
        """Register an agent that tasks are sent to, or change its URL; return whether it is new."""
        rows = await self._calls.call(
            "select treadle.define_push_agent(%b, %b, %b, %b)", agent, url, allow_private, actor
        )
        return bool(rows[0][0])

    async def remove_push(self, agent: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_push_agent(%b, %b)", agent, actor)

    async def seen(self, agents: Iterable[str]) -> None:
        await self._calls.call("select treadle.record_push_heartbeats(%b::text[])", list(agents))

    async def page(
        self,
        reach: Reach,
        *,
        only: str | None = None,
        after: str | None = None,
        limit: int,
    ) -> list[Record]:
        """Agents by id, or only one.

        A restricted caller sees its own agent, agents that serve one of its queues, and agents that
        have, or are assigned, a task of its project.
        """
        return await self._calls.page(
            "agent_load",
            key="agent_id",
            after=after,
            limit=limit,
            where={
                "agent_id = {}": only,
                "queues && {}": None if reach.queues is None else list(reach.queues),
                # Not "agent_id = {}", which is the first condition.
                "agent_id in ({})": reach.agent,
                "agent_id in (select places.agent from treadle.task_access as places"
                " where project_id = {})": reach.project_id,
            },
        )

    async def queues(self, agent_id: str) -> list[str] | None:
        """Return the queues of an agent; None if it is not registered."""
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
