"""Whatever calls come in whatever order, the rows are what a simple model says they should be."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.behaviour.conftest import EMPTY
from tests.behaviour.driver import Driver
from tests.behaviour.model import ENDED, LIVE, Task
from treadle.models import Claim

EXAMPLES, STEPS = 40, 40
AGENTS = st.sampled_from(["a", "b"])
PICK = st.integers(0, 10**6)
ANSWERS = ("complete", "fail", "release", "start", "heartbeat")


class Queue(RuleBasedStateMachine):
    """The calls of producers, agents, background processes and operators, in any order."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        super().__init__()
        with psycopg.connect(url) as conn:
            conn.execute(EMPTY.encode())
        self.driver = Driver(url, stack)
        self.driver.agent("a")
        self.driver.agent("b")
        self.tasks: dict[UUID, Task] = {}
        self.claims: list[Claim] = []
        self.last: Callable[[], object] | None = None
        self.now = 0
        self.driver.set_clock(timedelta(0), stopped=True)

    @rule(
        key=st.sampled_from([None, None, "k", "l"]),
        immediate=st.booleans(),
        max_attempts=st.integers(1, 3),
        delay=st.sampled_from([0, 0, 0, 50]),
        hold=st.sampled_from([False, False, False, True]),
    )
    def enqueue(
        self, key: str | None, immediate: bool, max_attempts: int, delay: int, hold: bool
    ) -> None:
        policy = {"strategy": "immediate" if immediate else "fixed", "initial_delay_s": 100}

        def call() -> UUID:
            return self.driver.enqueue(
                key=key,
                hold=hold,
                delay_s=delay,
                max_attempts=max_attempts,
                retry={**policy, "jitter": False, "poison": False},
            )

        task_id = call()
        holder = [
            task.id for task in self.tasks.values() if key and task.key == key and task.holds_key()
        ]
        if holder:
            assert task_id == holder[0]
        else:
            assert task_id not in self.tasks
            status = "created" if hold else "pending" if delay else "ready"
            due = self.now + delay if delay else None
            self.tasks[task_id] = Task(task_id, key, immediate, max_attempts, status, due)
        if key:
            self.last = lambda: self._same(call(), task_id)

    @rule(agent=AGENTS, limit=st.integers(1, 3), start=st.booleans())
    def claim(self, agent: str, limit: int, start: bool) -> None:
        token = uuid4()
        claims = self.driver.claim(agent, limit, start=start, token=token)
        # One priority: the oldest are taken first, each is ready, and none is left out.
        ready = [task.id for task in self.tasks.values() if task.status == "ready"]
        assert {claim.id for claim in claims} <= set(ready)
        assert len(claims) == min(limit, len(ready))
        for claim in claims:
            self.tasks[claim.id].claim(agent, token, start=start, now=self.now)
            assert claim.attempt == self.tasks[claim.id].attempt
        self.claims += claims
        self.last = (
            (lambda: self._same(self.driver.claim(agent, limit, token=token), claims))
            if claims
            else None
        )

    @precondition(lambda self: self.claims)
    @rule(pick=PICK, newest=st.booleans(), answer=st.sampled_from(ANSWERS))
    def answer(self, pick: int, newest: bool, answer: str) -> None:
        """Of a claim that lives, ended or was superseded, as it comes."""
        claim = self.claims[-1] if newest else self.claims[pick % len(self.claims)]
        self._answer(claim, answer)
        self.last = lambda: self._answer(claim, answer)

    @precondition(lambda self: self.tasks)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        task = self._pick(pick)
        assert self.driver.cancel(task.id) == [task.cancel()]
        self.last = lambda: self._same(self.driver.cancel(task.id), [task.cancel()])

    @precondition(lambda self: self.tasks)
    @rule(pick=PICK)
    def unhold(self, pick: int) -> None:
        task = self._pick(pick)
        if task.status == "created":
            waits = task.due is not None and task.due > self.now
            task.status, task.due = ("pending", task.due) if waits else ("ready", None)
        rows = self.driver.rows("select verdict from treadle.unhold_tasks(%s)", [task.id])
        assert rows == [(task.status,)]

    @precondition(lambda self: self.tasks)
    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        task = self._pick(pick)
        taken = any(
            other.key == task.key and other.holds_key()
            for other in self.tasks.values()
            if other is not task and task.key
        )
        if task.may_retry() and not taken:
            assert self.driver.retry(task.id) == "ready"
            task.retry()
        else:
            with pytest.raises(psycopg.DatabaseError) as raised:
                self.driver.retry(task.id)
            assert raised.value.sqlstate == "TR102"

    @rule(seconds=st.sampled_from([1, 30, 61, 91, 101]))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        query = "update public.test_clock set stopped_at = stopped_at + %s"
        self.driver.rows(query, timedelta(seconds=seconds))

    @rule()
    def reap(self) -> None:
        expected = {task.id: task.reap(self.now) for task in self.tasks.values()}
        found = {each.id: each.reason for each in self.driver.reap()}
        assert found == {task_id: reason for task_id, reason in expected.items() if reason}
        self.last = lambda: self._same(self.driver.reap(), [])

    @rule()
    def promote(self) -> None:
        expected = {task.id for task in self.tasks.values() if task.promote(self.now)}
        assert {each.id for each in self.driver.promote()} == expected
        self.last = lambda: self._same(self.driver.promote(), [])

    @precondition(lambda self: self.last)
    @rule()
    def repeat_the_last_call(self) -> None:
        """Its answer was lost: the same again."""
        assert self.last is not None
        self.last()

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        query = """
            select id, status, attempt, max_attempts, agent_id, claim_token, last_token, output
            from treadle.tasks
        """
        found = {row[0]: row[1:] for row in self.driver.rows(query)}
        expected = {
            task.id: (
                *(task.status, task.attempt, task.max_attempts),
                *(task.agent, task.token, task.last_token, task.output),
            )
            for task in self.tasks.values()
        }
        assert found == expected
        histories = dict(
            self.driver.rows(
                """
                select task_id, array_agg(coalesce(reason, outcome) order by ended_at, claim_token)
                from treadle.attempts group by task_id
                """
            )
        )
        for task in self.tasks.values():
            assert sorted(histories.get(task.id, [])) == sorted(task.history)
            assert (task.token is not None) == (task.status in LIVE)
            assert not (task.status in ENDED and task.token)

    def _answer(self, claim: Claim, answer: str) -> None:
        task, token = self.tasks[claim.id], claim.token
        output = {"token": str(token)}
        if answer == "complete":
            assert self.driver.complete(claim, output) == task.complete(token, output)
        elif answer == "fail":
            assert self.driver.fail(claim) == task.fail(token, self.now)
        elif answer == "release":
            assert self.driver.release(claim) == task.release(token)
        elif answer == "start":
            assert self.driver.start(claim) == task.start(token, self.now)
        else:
            assert self.driver.heartbeat(claim) == task.heartbeat(token, self.now)

    def _pick(self, number: int) -> Task:
        return list(self.tasks.values())[number % len(self.tasks)]

    def teardown(self) -> None:
        self.driver.conn.close()

    @staticmethod
    def _same(found: object, wanted: object) -> None:
        assert found == wanted


@pytest.mark.requirement("F2")
def test_random_calls_leave_the_rows_that_the_model_says(shared_url: str) -> None:
    with ExitStack() as stack:
        run_state_machine_as_test(
            lambda: Queue(shared_url, stack),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
