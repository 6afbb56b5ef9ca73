"""A server, a harness and agents as processes of their own."""

import json
import os
import socket
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from tests.drivers.http.servers import Served
from tests.drivers.processes.children import ROOT, Child, Conn, Spawn, rows, value
from tests.drivers.processes.fork_server import forks

ACT = "tests.drivers.apps.harness:act"
QUICK = ("--drain-every", "0.2", "--requeue-every", "0.2")


class Agent:
    """A process that fetches tasks when it starts and when it is nudged."""

    def __init__(self, harness_url: str, url: str, log: Path) -> None:
        self._process = forks().start(
            "tests.drivers.apps.harness_agent",
            [harness_url, url],
            env=os.environ,
            cwd=ROOT,
            log=log,
        )

    def kill(self) -> None:
        """SIGKILL: it cannot report anything."""
        self._process.kill()
        self._process.wait(10)


class Site:
    """A server, harnesses and agents on one database."""

    def __init__(self, conn: Conn, serve: Callable[[], Served], spawn: Spawn, folder: Path) -> None:
        self.conn = conn
        self._serve = serve
        self.folder = folder
        self.effects = folder / "effects"
        self.effects.touch()
        self.agent_url = f"http://127.0.0.1:{free_port()}"
        self._spawn = spawn
        self._agents: list[Agent] = []

    @cached_property
    def server(self) -> Served:
        """The server, started on first use."""
        return self._serve()

    def harness(self, *arguments: str, act: str = ACT, **settings: object) -> Child:
        """Start a harness."""
        settings = {"test_effects": self.effects, "drain_s": 5, **settings}
        return self._spawn("harness", "run", act, *(arguments or QUICK), **settings)

    def agent(self, url: str | None = None) -> Agent:
        """Start an agent."""
        made = Agent(self.server.url, url or self.agent_url, self.folder / "agent.log")
        self._agents.append(made)
        return made

    async def put(self, url: str | None = None, **payload: Any) -> str:
        """Store a task over HTTP."""
        async with httpx2.AsyncClient(base_url=self.server.url, timeout=30) as http:
            body = {"agent_url": url or self.agent_url, "payload": payload}
            answer = await http.post("/harness/tasks", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["task_id"])

    async def decided(self, count: int = 1, **decision: Any) -> list[str]:
        """Tasks that are completed without a nudge to the harness."""
        store = "select id::text from treadle.enqueue_harness_task(%s, '{}')"
        ids = [str(await value(self.conn, store, self.agent_url)) for _ in range(count)]
        for _ in ids:
            await self.decide(**decision)
        return ids

    async def decide(self, **decision: Any) -> None:
        """Claim the next task and complete it without a nudge to the harness."""
        token = uuid4()
        claim = "select id from treadle.claim_harness_task(%s, %s)"
        task = await value(self.conn, claim, self.agent_url, token)
        complete = "select treadle.complete_harness_task(%s, %s, %s::jsonb)"
        await rows(self.conn, complete, task, token, json.dumps(decision))

    async def allow(self, url: str | None = None) -> None:
        """Let the harness nudge an agent."""
        query = "select treadle.allow_nudges(%s, true, true)"
        await rows(self.conn, query, url or self.agent_url)

    async def age_claims(self) -> None:
        """Expire the current claims of agents."""
        query = """
            update treadle.tasks set lease_until = lease_until - interval '1 hour'
            where queue = 'harness' and lease_until is not null
        """
        await self.conn.execute(query)

    async def age_actions(self) -> None:
        """Expire the leases and pauses of actions."""
        query = """
            update treadle.harness_actions
            set
              lease_until = lease_until - interval '1 hour',
              next_try_at = next_try_at - interval '1 hour'
        """
        await self.conn.execute(query)

    async def states(self) -> dict[str, tuple[str, str | None]]:
        """The states of tasks and their actions."""
        query = "select task_id::text, status, action from treadle.harness_tasks"
        return {row[0]: (row[1], row[2]) for row in await rows(self.conn, query)}

    def all_are(
        self, status: str, action: str | None, ids: list[str]
    ) -> Callable[[], Awaitable[bool]]:
        """A condition to wait for."""

        async def check() -> bool:
            found = await self.states()
            return all(found[each] == (status, action) for each in ids)

        return check

    def done(self) -> list[str]:
        """The tasks whose action was executed, one entry per execution."""
        return self.effects.read_text().split("\n")[:-1]

    def end(self) -> None:
        for agent in self._agents:
            agent.kill()


def free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
