"""What routes of agents work with, as one dependency: each of its own would cost as much again."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from treadle.api.access import Principal, principal
from treadle.api.deps import gateway
from treadle.db.gateway import Gateway, Pair


class Agent:
    """A caller with the scope `work`, and the calls that it makes."""

    def __init__(self, who: Principal, calls: Gateway) -> None:
        self.who = who
        self.calls = calls

    async def on(self, task_id: UUID, token: UUID) -> Gateway:
        """The calls, for one claim that the caller may act on."""
        return await self.on_many([(task_id, token)])

    async def on_many(self, claims: Sequence[Pair]) -> Gateway:
        """The calls, for claims of agents, queues and projects that the token is for."""
        who = self.who
        if who.queues is not None or who.agent is not None or who.project is not None:
            for queue, project, agent in await self.calls.claims_of(claims):
                who.check_queue(queue)
                who.check_project(project)
                # Of no agent: no claim had this token, and nothing will be done with it.
                if agent is not None:
                    who.check_agent(agent)
        return self.calls


async def _hand(request: Request) -> Agent:
    who = await principal(request)
    who.check_scope("work")
    return Agent(who, await gateway(request))


# As `need("work")` says it.
_hand.scope = "work"  # type: ignore[attr-defined]
Hand = Annotated[Agent, Depends(_hand)]
