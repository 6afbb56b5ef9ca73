"""After any sequence of calls, the rows match a simple model."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.drivers.engine import Driver
from tests.drivers.task_model import ENDED, LIVE, Task
from treadle.models import Claim

EXAMPLES, STEPS = 120, 40
AGENTS = st.sampled_from(["a", "b"])
PICK = st.integers(0, 10**6)
WORK = ("claim", "complete", "fail", "fail", "release", "start", "heartbeat")


class Queue(RuleBasedStateMachine):
    """The calls of producers, agents, background processes and operators, in any order."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        for table in ("tasks", "attempts", "dead_letters", "events"):
            driver.rows(f"delete from treadle.{table}")
        self.tasks: dict[UUID, Task] = {}
        self.claims: list[Claim] = []
        self.last: Callable[[], object] | None = None
        self.now = 0

    @initialize()
    def begin(self) -> None:
        """Some tasks to work on, one of them claimed."""
        for number in range(4):
            self.enqueue(None, number % 2 == 0, 2, 0, False)
        self._claim("a", 1, start=True)

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

        task_id, holder = call(), self._holder(key)
        if holder is not None:
            assert task_id == holder.id
        else:
            assert task_id not in self.tasks
            status = "created" if hold else "pending" if delay else "ready"
            due = self.now + delay if delay else None
            self.tasks[task_id] = Task(task_id, key, immediate, max_attempts, status, due)
        self.last = (lambda: self._same(call(), task_id)) if key else None

    @rule(agent=AGENTS, what=st.sampled_from(WORK), back=st.integers(1, 6), start=st.booleans())
    def work(self, agent: str, what: str, back: int, start: bool) -> None:
        """Claim, or answer for one of the last claims: alive, ended or superseded."""
        if what == "claim" or len(self.claims) < back:
            self._claim(agent, min(back, 2), start=start)
            return
        claim = self.claims[-back]
        self._answer(claim, what)
        self.last = lambda: self._answer(claim, what)

    @rule(what=st.sampled_from(["cancel", "retry", "retry", "unhold"]), pick=PICK)
    def decide(self, what: str, pick: int) -> None:
        """A person decides about a task."""
        task = list(self.tasks.values())[pick % len(self.tasks)]
        if what == "cancel":
            assert self.driver.cancel(task.id) == [task.cancel()]
            self.last = lambda: self._same(self.driver.cancel(task.id), [task.cancel()])
        elif what == "unhold":
            task.unhold(self.now)
            rows = self.driver.rows("select verdict from treadle.release_held_tasks(%s)", [task.id])
            assert rows == [(task.status,)]
        elif task.may_retry() and self._holder(task.key) in (None, task):
            assert self.driver.retry(task.id) == "ready"
            task.retry()
        else:
            with pytest.raises(psycopg.DatabaseError) as raised:
                self.driver.retry(task.id)
            assert raised.value.sqlstate == "TR102"

    @rule(
        seconds=st.sampled_from([0, 1, 30, 61, 91, 101]),
        what=st.sampled_from(["reap", "promote"]),
    )
    def let_time_pass(self, seconds: int, what: str) -> None:
        """Then the reaper or the promoter looks."""
        self.now += seconds
        query = "update public.test_clock set stopped_at = stopped_at + %s"
        self.driver.rows(query, timedelta(seconds=seconds))
        if what == "reap":
            expected = {task.id: task.reap(self.now) for task in self.tasks.values()}
            found = {each.id: each.reason for each in self.driver.reap()}
            assert found == {task_id: reason for task_id, reason in expected.items() if reason}
            self.last = lambda: self._same(self.driver.reap(), [])
        else:
            due = {task.id for task in self.tasks.values() if task.promote(self.now)}
            assert {each.id for each in self.driver.promote()} == due
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

    def _claim(self, agent: str, limit: int, *, start: bool) -> None:
        token = uuid4()
        claims = self.driver.claim(agent, limit, start=start, token=token)
        ready = {task.id for task in self.tasks.values() if task.status == "ready"}
        assert {claim.id for claim in claims} <= ready
        assert len(claims) == min(limit, len(ready))
        for claim in claims:
            self.tasks[claim.id].claim(agent, token, start=start, now=self.now)
            assert claim.attempt == self.tasks[claim.id].attempt
        self.claims += claims
        self.last = None
        if claims:
            self.last = lambda: self._same(self.driver.claim(agent, limit, token=token), claims)

    def _answer(self, claim: Claim, what: str) -> None:
        task, token = self.tasks[claim.id], claim.token
        if what == "complete":
            output = {"token": str(token)}
            assert self.driver.complete(claim, output) == task.complete(token, output)
        elif what == "release":
            assert self.driver.release(claim) == task.release(token)
        else:
            found = getattr(self.driver, what)(claim)
            assert found == getattr(task, what)(token, self.now)

    def _holder(self, key: str | None) -> Task | None:
        held = [task for task in self.tasks.values() if task.key == key and task.holds_key()]
        return held[0] if key is not None and held else None

    @staticmethod
    def _same(found: object, wanted: object) -> None:
        assert found == wanted


@pytest.mark.requirement("F2")
def test_random_calls_leave_the_rows_that_the_model_predicts(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)

    run_state_machine_as_test(
        lambda: Queue(driver),  # type: ignore[arg-type]
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            # Not shrunk: that takes minutes, and what failed is printed call by call.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
