"""What routes of agents work with, as one dependency: each of its own would cost as much again."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from treadle.api.access import Principal, principal
from treadle.api.deps import gateway
from treadle.api.v1.reach import check_places, is_bound
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
        if is_bound(self.who):
            check_places(self.who, await self.calls.claims_of(claims))
        return self.calls


async def _hand(request: Request) -> Agent:
    who = await principal(request)
    who.check_scope("work")
    return Agent(who, await gateway(request))


# As `need("work")` says it.
_hand.scope = "work"  # type: ignore[attr-defined]
Hand = Annotated[Agent, Depends(_hand)]
