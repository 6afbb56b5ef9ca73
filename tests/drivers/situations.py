"""Random situations for claims: agents, tasks, and everything that can hold a task back."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers import gates, keys
from tests.drivers.budgets import set_budget
from tests.drivers.engine import Driver
from tests.drivers.why import registered, silence

MINUTE = timedelta(minutes=1)
AGENTS = ("a", "b", "c")
QUEUES = ("default", "mail")
TYPES = ("code", "test", "review")
SKILLS = ("git", "gpu")


class Situation:
    """Random agents, tasks and gates; the clock is stopped."""

    def __init__(self, driver: Driver, seed: int, *, tasks: int = 12) -> None:
        self.driver = driver
        self.dice = random.Random(seed)
        driver.set_clock(timedelta(hours=1), stopped=True)
        self.now = driver.value("select treadle.clock()")
        driver.rows("select treadle.define_queue('mail')")
        driver.rows("insert into treadle.projects (name) values ('p'), ('q')")
        for key in ("api", "llm"):
            gates.define_gate(driver, key)
        if self.chance(0.4):
            unit, most = self.dice.choice([("starts", 1), ("tokens", 500), ("usd", 1)])
            gates.define_gate(driver, "api", unit=unit, limit=most, per_s=60)
        self._agents()
        self.tasks = [self._enqueue() for _ in range(tasks)]
        self._some_life()
        self._obstacles()

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def some(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if self.chance(0.5)]

    def claim(self, agent: str) -> UUID | None:
        """The task that the agent would claim now; the claim is released at once."""
        asked = registered(self.driver, agent)
        with self.driver.conn.transaction(force_rollback=True):
            claims = self.driver.claim(agent, 1, **asked)
        return claims[0].id if claims else None

    def live(self) -> list[str]:
        rows = self.driver.rows(
            "select id from treadle.agents where treadle.is_live(agents, treadle.clock())"
        )
        return [row[0] for row in rows]

    def unsure(self) -> bool:
        """Whether a claim may admit other tasks first, or projects take turns."""
        query = """
            select treadle.may_admit() or exists (select from treadle.queues where fair)
        """
        return bool(self.driver.value(query))

    def _agents(self) -> None:
        for name in AGENTS:
            self.driver.agent(
                name,
                queues=self.some(QUEUES) or ["default"],
                task_types=None if self.chance(0.5) else self.some(TYPES),
                capabilities=self.some(SKILLS),
                max_concurrent_tasks=self.dice.choice([None, None, 0, 1, 2]),
            )

    def _enqueue(self) -> UUID:
        options: dict[str, Any] = {
            "priority": self.dice.choice([10, 20, 30]),
            "ageing_rate": self.dice.choice([0, 0, 0.1, 2]),
        }
        extras: list[tuple[float, str, Any]] = [
            (0.2, "capabilities", self.some(SKILLS)),
            (0.1, "assigned_agent", self.dice.choice(AGENTS)),
            (0.1, "delay_s", self.dice.choice([60, 600])),
            (0.1, "hold", True),
            (0.3, "max_cost_usd", self.dice.choice([0.5, 1, 3])),
            (0.2, "max_tokens", self.dice.choice([10, 1000])),
            (0.2, "project", self.dice.choice("pq")),
            (0.3, "gates", self.dice.choice([["api"], ["llm"], ["api", "llm"]])),
            (0.15, "concurrency_key", self.dice.choice("xy")),
            (
                0.1,
                "deadline_at",
                (self.now + self.dice.choice([1, 60]) * MINUTE).isoformat(),
            ),
        ]
        options |= {name: value for share, name, value in extras if self.chance(share)}
        queue, kind = self.dice.choice(QUEUES), self.dice.choice(TYPES)
        return self.driver.enqueue(queue=queue, type=kind, **options)

    def _some_life(self) -> None:
        """Claim some tasks, and end some of those."""
        for agent in AGENTS:
            for claim in self.driver.claim(agent, self.dice.choice([0, 1, 2]) or 1, queues=QUEUES):
                if self.chance(0.3):
                    self.driver.complete(claim)
                elif self.chance(0.3):
                    self.driver.fail(claim)

    def _obstacles(self) -> None:
        driver, chance = self.driver, self.chance
        if chance(0.15):
            driver.rows("select treadle.pause_queue(%s)", self.dice.choice(QUEUES))
        if chance(0.2):
            driver.rows("select treadle.pause_type(%s)", self.dice.choice(TYPES))
        if chance(0.2):
            driver.rows("select treadle.close_gate(%s, 60)", self.dice.choice(["api", "llm"]))
        if chance(0.2):
            silence(driver, self.dice.choice(AGENTS))
        if chance(0.2):
            driver.rows("select treadle.set_agent_status(%s, 'draining')", self.dice.choice(AGENTS))
        if chance(0.2):
            keys.limit(driver, "x", self.dice.choice([0, 1, 2]))
        if chance(0.15):
            driver.rows("select treadle.define_queue('mail', %s)", Jsonb({"fair": True}))
        for scope, key in (("type", "code"), ("agent", "a"), ("agent", "b"), ("all", None)):
            if chance(0.2):
                set_budget(driver, scope, key, self.dice.choice([0.5, 1, 2]))
        if chance(0.3):
            kind = self.dice.choice(TYPES)
            driver.rows("select treadle.trip_breaker(%s, 60)", kind)
            if chance(0.7):
                driver.rows("update treadle.breakers set probe_at = treadle.clock()")
