"""Random DAGs, and workers and an operator that act on them at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from time import monotonic
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.drivers import dags
from tests.drivers.dag_faults import claimed_too_early, unended
from tests.drivers.dags import depend, node, spawn
from tests.drivers.engine import Driver, Record
from treadle.models import Claim

POLICIES = ("wait", "cancel", "continue")
# Errors that concurrent sessions may cause: claim lost, too late, a cycle.
REFUSALS = ("TR101", "TR102", "TR103")
# If no task is in one of these states, nothing can change any more.
MOVING = {"ready", "claimed", "running", "dead_lettered"}
WORKERS = 8
SIZES = ((1, 4), (1, 4), (3, 8), (3, 8), (3, 8), (5, 15), (20, 40))
LONGEST_S = 60.0

_numbers = count()


@dataclass
class Chaos:
    """One round: the tasks that were made, and what was seen."""

    seed: int
    ids: list[UUID] = field(default_factory=list)
    over: Event = field(default_factory=Event)
    refusals: int = 0

    def build(self, driver: Driver, count: int, largest: int | None = None) -> None:
        """So many random DAGs; the first has `largest` tasks."""
        chance = random.Random(self.seed)
        for number in range(count):
            size = chance.randint(*chance.choice(SIZES))
            nodes = random_nodes(chance, largest if largest and number == 0 else size)
            policy = chance.choice(POLICIES)
            if len(nodes) < 40 and chance.random() < 0.4:
                graph = _piece_by_piece(driver, chance, nodes, policy)
            else:
                graph = dags.create(driver, nodes, on_dead_letter=policy)
            self.ids += graph.ids.values()

    def run(self, session: Driver, number: int) -> int:
        """Run one session: those up to WORKERS work, the last one resolves dead letters."""
        chance = random.Random(self.seed * 100 + number)
        try:
            if number < WORKERS:
                return self._work(session, chance, f"w{number}")
            return self._decide(session, chance)
        except BaseException:
            self.over.set()
            raise

    def _work(self, session: Driver, chance: random.Random, agent: str) -> int:
        session.agent(agent)
        claimed = 0
        while not self.over.is_set():
            claims = session.claim(agent, limit=chance.choice((1, 1, 2, 3, 5, 8)))
            if not claims:
                self.over.wait(0.005)
                continue
            claimed += len(claims)
            assert claimed_too_early(session, [claim.id for claim in claims]) == []
            chance.shuffle(claims)
            done = [claim for claim in claims if chance.random() < 0.6]
            for claim in claims:
                if claim not in done and not self._try(self._act, session, chance, claim):
                    done.append(claim)
            if done:
                _complete(session, done)
        return claimed

    def _act(self, session: Driver, chance: random.Random, claim: Claim) -> None:
        roll = chance.random()
        if roll < 0.12:
            session.fail(claim, action="retry")
        elif roll < 0.24:
            session.fail(claim, action="fail")
        elif roll < 0.27:
            session.fail(claim, action="cancel")
        elif roll < 0.35:
            session.release(claim)
        elif roll < 0.38:
            _complete(session, [claim])
            session.cancel(*chance.sample(self.ids, min(len(self.ids), chance.randint(1, 2))))
        elif roll < 0.46:
            _complete(session, [claim])
            depend(session, *chance.choices(self.ids, k=2), optional=chance.random() < 0.5)
        elif roll < 0.50:
            self._extend(session, chance, claim)
            _complete(session, [claim])
        elif roll < 0.56:
            self._follow(session, chance, claim)
            _complete(session, [claim])
        else:
            self._spawn(session, chance, claim, wait=roll < 0.8)

    def _spawn(self, session: Driver, chance: random.Random, claim: Claim, *, wait: bool) -> None:
        steps = len(claim.steps or [])
        depth = claim.spec.get("depth", 0)
        if depth + steps > chance.randint(0, 3):
            _complete(session, [claim])
            return
        nodes = self._subtasks(chance, chance.randint(1, 3), depth + 1)
        children = spawn(session, claim, nodes, name=f"spawn:{steps}")
        self.ids += children
        if wait:
            optional = chance.random() < 0.4
            session.value(
                "select treadle.suspend_task(%s, %s, p_children => %s, p_optional => %s)",
                *(claim.id, claim.token, children, optional),
            )
        else:
            _complete(session, [claim])

    def _extend(self, session: Driver, chance: random.Random, claim: Claim) -> None:
        """Add tasks to the DAG from outside, one of them after the running task."""
        if claim.dag_id is None or claim.spec.get("depth", 0) > 2:
            return
        nodes = self._subtasks(chance, 2, 3)
        nodes[0]["after"] = [*nodes[0]["after"], str(claim.id)]
        query = "select id from treadle.add_tasks(%s, %s)"
        self.ids += [row[0] for row in session.rows(query, claim.dag_id, Jsonb(nodes))]

    def _follow(self, session: Driver, chance: random.Random, claim: Claim) -> None:
        """Enqueue a task in no DAG after the running task and others, maybe for the second time."""
        if claim.spec.get("depth", 0) > 2:
            return
        after = [str(claim.id), {"task": str(chance.choice(self.ids)), "optional": True}]
        options = {**_node("", after, 3), "idempotency_key": _key(chance)}
        del options["name"]
        query = "select id from treadle.enqueue_tasks(%s)"
        self.ids += [row[0] for row in session.rows(query, Jsonb([options]))]

    def _subtasks(self, chance: random.Random, size: int, depth: int) -> list[Record]:
        nodes: list[Record] = []
        for _ in range(size):
            after = [each["name"] for each in nodes if chance.random() < 0.3]
            if chance.random() < 0.2:
                after.append({"task": str(chance.choice(self.ids)), "optional": True})
            nodes.append(_node(f"n{next(_numbers)}", after, depth))
        # Some are tasks that another list, or `_follow`, has made before.
        nodes[0]["idempotency_key"] = _key(chance)
        return nodes

    def _decide(self, session: Driver, chance: random.Random) -> int:
        """Resolve dead letters and retry a few, until nothing is left or nothing can change."""
        revivals, decided, deadline = 5, 0, monotonic() + LONGEST_S
        while not self.over.is_set():
            left = unended(session)
            if monotonic() > deadline or not left.keys() & MOVING:
                self.over.set()
                break
            query = "select id from treadle.tasks where status = 'dead_lettered'"
            for (task_id,) in session.rows(query):
                how = chance.choice(("retry", "retry", "cancel"))
                self._try(session.retry, task_id, how)
                decided += 1
            if revivals and chance.random() < 0.05:
                revivals -= 1
                query = "select id from treadle.tasks where status = 'cancelled' limit 3"
                for (task_id,) in session.rows(query):
                    self._try(session.retry, task_id)
            self.over.wait(0.01)
        return decided

    def _try(self, call: Callable[..., object], *arguments: object) -> bool:
        """Return whether a call was accepted; unexpected errors are raised."""
        try:
            call(*arguments)
        except psycopg.DatabaseError as error:
            if error.sqlstate not in REFUSALS:
                raise
            self.refusals += 1
            return False
        return True


def _key(chance: random.Random) -> str | None:
    return f"k{chance.randint(0, 40)}" if chance.random() < 0.3 else None


def random_nodes(chance: random.Random, size: int) -> list[Record]:
    """Tasks with edges to earlier ones, then shuffled: ids do not follow the edges."""
    width = chance.choice((1, 3, 10, 200))
    nodes = []
    for place in range(size):
        near = range(max(0, place - width), place)
        wanted = chance.sample(near, min(len(near), chance.choice((0, 1, 1, 2, 3))))
        after = [
            {"task": f"t{other}", "optional": True} if chance.random() < 0.25 else f"t{other}"
            for other in wanted
        ]
        nodes.append(_node(f"t{place}", after, 0))
    chance.shuffle(nodes)
    return nodes


def _node(name: str, after: Sequence[object], depth: int) -> Record:
    retry = {"strategy": "immediate", "poison": False}
    return node(name, after, spec={"depth": depth}, retry=retry, max_attempts=3)


def _piece_by_piece(
    driver: Driver, chance: random.Random, nodes: list[Record], policy: str
) -> dags.Graph:
    """The same DAG by open_dag, add_task, add_dependency and start_dag."""
    graph = dags.opened(driver, on_dead_letter=policy)
    for each in nodes:
        known = [edge for edge in each["after"] if _target(edge) in graph.ids]
        at_once = [edge for edge in known if chance.random() < 0.5]
        dags.add(graph, {**each, "after": at_once})
    for each in nodes:
        for edge in each["after"]:
            needed = graph[_target(edge)]
            depend(driver, graph[each["name"]], needed, optional=not isinstance(edge, str))
    dags.start(graph)
    return graph


def _target(edge: str | Record) -> str:
    return edge if isinstance(edge, str) else edge["task"]


def _complete(session: Driver, claims: list[Claim]) -> None:
    session.rows(
        "select * from treadle.complete_tasks(%s, %s)",
        *([claim.id for claim in claims], [claim.token for claim in claims]),
    )
