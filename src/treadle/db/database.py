"""The SQL interface: one attribute per noun, one method per SQL function or view.

No other module changes the database. A method names the function, passes its arguments and turns
rows into models. Decisions belong in SQL, where every client gets them. Rows of views are dicts.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TypeVar

import anyio

from treadle.db.access import Access
from treadle.db.agents import Agents
from treadle.db.artifacts import Artifacts
from treadle.db.breakers import Breakers
from treadle.db.budgets import Budgets
from treadle.db.calls import Calls, pause_before_repeat
from treadle.db.claims import Claims
from treadle.db.dags import Dags
from treadle.db.dead_letters import DeadLetters
from treadle.db.errors import may_have_happened
from treadle.db.events import Events
from treadle.db.gates import Gates
from treadle.db.harness import Harness
from treadle.db.keys import Keys
from treadle.db.pool import Pool
from treadle.db.projects import Projects
from treadle.db.push import Push
from treadle.db.queues import Queues
from treadle.db.replies import KeyedRequest, Replies, StoredResponse
from treadle.db.retention import Retention
from treadle.db.schedules import Schedules
from treadle.db.steps import Steps
from treadle.db.tasks import Tasks
from treadle.db.tokens import Tokens
from treadle.db.triggers import Triggers
from treadle.db.types import Types
from treadle.db.waits import Waits
from treadle.db.webhooks import Webhooks
from treadle.db.work import Work
from treadle.errors import TreadleError

Result = TypeVar("Result")


class Database:
    """The SQL interface; its pool opens on first use."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    @cached_property
    def access(self) -> Access:
        return Access(self.calls)

    @cached_property
    def agents(self) -> Agents:
        return Agents(self.calls)

    @cached_property
    def artifacts(self) -> Artifacts:
        return Artifacts(self.calls)

    @cached_property
    def breakers(self) -> Breakers:
        return Breakers(self.calls)

    @cached_property
    def budgets(self) -> Budgets:
        return Budgets(self.calls)

    @cached_property
    def claims(self) -> Claims:
        return Claims(self.calls)

    @cached_property
    def dags(self) -> Dags:
        return Dags(self.calls)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self.calls)

    @cached_property
    def events(self) -> Events:
        return Events(self.calls)

    @cached_property
    def gates(self) -> Gates:
        return Gates(self.calls)

    @cached_property
    def harness(self) -> Harness:
        return Harness(self.calls)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.calls)

    @cached_property
    def projects(self) -> Projects:
        return Projects(self.calls)

    @cached_property
    def push(self) -> Push:
        return Push(self.calls)

    @cached_property
    def queues(self) -> Queues:
        return Queues(self.calls)

    @cached_property
    def replies(self) -> Replies:
        return Replies(self.calls)

    @cached_property
    def retention(self) -> Retention:
        return Retention(self.calls)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.calls)

    @cached_property
    def steps(self) -> Steps:
        return Steps(self.calls)

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self.calls)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.calls)

    @cached_property
    def triggers(self) -> Triggers:
        return Triggers(self.calls)

    @cached_property
    def types(self) -> Types:
        return Types(self.calls)

    @cached_property
    def waits(self) -> Waits:
        return Waits(self.calls)

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(self.calls)

    @cached_property
    def work(self) -> Work:
        return Work(self.calls)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Database"]:
        """Open a transaction; the yielded Database uses its connection."""
        async with self.calls.transaction() as calls:
            yield Database(calls)

    async def run_once(
        self, request: KeyedRequest, effect: Callable[["Database"], Awaitable[StoredResponse]]
    ) -> StoredResponse:
        """Run `effect` and store its response in one transaction; repeats get the response."""

        async def run(db: "Database") -> StoredResponse:
            stored = await db.replies.begin(request)
            if stored is None:
                stored = await effect(db)
                await db.replies.keep(request, stored)
            return stored

        return await self.repeat(run, once=False)

    async def repeat(
        self, effect: Callable[["Database"], Awaitable[Result]], *, once: bool = True
    ) -> Result:
        """Run `effect` in one transaction; repeat it after a deadlock or a lost connection.

        With `once` the transaction is repeated only if it is known to have changed nothing.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self.transaction() as db:
                    return await effect(db)
            except TreadleError as error:
                pause_s = pause_before_repeat(error, attempt)
                if pause_s is None or (once and may_have_happened(error.__cause__)):
                    raise
                await anyio.sleep(pause_s)

    @asynccontextmanager
    async def separate(self, name: str) -> AsyncIterator["Database"]:
        """Open one connection outside the pool, for a thread with an event loop of its own."""
        async with self.calls.separate(name) as calls:
            yield Database(calls)

    async def for_handlers(self, transactions: Pool) -> "Database":
        """Return a Database with separate connections for the transactions of handlers."""
        return Database(await self.calls.for_handlers(transactions))
