"""Who calls, and what that caller may do.

A server on loopback trusts whoever reaches it until there is a token; from then on, and on every
other address, each request but a health check needs one. The wall in front of all routes finds out
who calls (`treadle.api.wall`); routes say which scope they need, and check what they act on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from fastapi import Depends, Request

from treadle.errors import Forbidden, Unauthenticated

log = structlog.get_logger(__name__)

Scope = Literal["read", "enqueue", "work", "operate", "admin"]

# Where the wall leaves the caller in the scope of a request.
KEY = "treadle.principal"
# Whether the caller may stay; see `check_stay`.
STAY = "treadle.stay"
NO_TOKEN = "this needs a token"
HOW = "Send Authorization: Bearer TOKEN; make one with: treadle token create"


@dataclass(frozen=True)
class Principal:
    """The caller of a request."""

    name: str
    scopes: frozenset[str]
    # What it may touch; None is everything.
    queues: frozenset[str] | None = None
    agent: str | None = None
    project_id: UUID | None = None
    # What the project is called; a name is for people, and may belong to another project soon.
    project: str | None = None
    # The id of its token; None for a caller that needs none.
    token: str | None = None

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope: admin has all of them, operate has read."""
        return (
            scope in self.scopes
            or "admin" in self.scopes
            or (scope == "read" and "operate" in self.scopes)
        )

    def check_scope(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"{self.name} lacks the scope {scope}", scope=scope)

    def sees(self, queue: str | None) -> bool:
        """Whether a list may show what is in this queue."""
        return self.queues is None or queue in self.queues

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the token is not for."""
        if not self.sees(queue):
            raise Forbidden(f"{self.name} may not use the queue {queue}", queue=queue)

    def check_agent(self, agent: str | None) -> None:
        """Refuse to act for an agent that the token does not belong to."""
        if self.agent is not None and agent != self.agent:
            raise Forbidden(f"{self.name} may not act for {agent}", agent=agent)

    def check_project(self, project_id: UUID | None) -> None:
        """Refuse work of a project that the token is not for."""
        if self.project_id is not None and project_id != self.project_id:
            raise Forbidden(
                f"{self.name} may not use the project {project_id}",
                project_id=None if project_id is None else str(project_id),
            )

    def check_author(self, created_by: str | None) -> None:
        """Refuse to create something in the name of another; only an operator may."""
        if created_by not in (None, self.name, self.agent) and not self.may("operate"):
            raise Forbidden(
                f"{self.name} may not create work in the name of {created_by}",
                hint="Leave created_by out, or use a token with the scope operate.",
                argument="created_by",
            )


LOCAL = Principal("local", frozenset({"admin"}))


async def principal(request: Request) -> Principal:
    """Who calls, as the wall found; without a wall nobody gets in."""
    found = request.scope.get(KEY)
    if not isinstance(found, Principal):
        raise Unauthenticated(NO_TOKEN, hint=HOW)
    return found


Who = Annotated[Principal, Depends(principal)]


async def check_stay(request: Request) -> None:
    """Refuse a caller whose token has ended since it came; for routes that wait."""
    stay = request.scope.get(STAY)
    if stay is not None:
        await stay.check()


def need(scope: Scope) -> Any:
    """A dependency for routes: the caller has this scope. `dependencies=[need("read")]`.

    What an operator changes is logged, whether or not the database keeps who it was.
    """
    audited = scope in ("operate", "admin")

    # Not by Who: each dependency of a dependency costs as much again.
    async def check(request: Request) -> Principal:
        who = await principal(request)
        who.check_scope(scope)
        if audited and request.method != "GET":
            log.info("http.operated", by=who.name, method=request.method, path=request.url.path)
        return who

    # For those who look whether a route was forgotten.
    check.scope = scope  # type: ignore[attr-defined]
    checked: Callable[..., Any] = check
    return Depends(checked)
