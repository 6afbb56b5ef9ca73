"""Changed limits, paused queues, and random runs that neither lose nor duplicate slots."""

import random
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.drivers.dags import create, depend, spawn, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.keys import admit, held, keyed, leftovers, limit, standing, wait_for_answer
from tests.drivers.refusals import allowed
from tests.drivers.waits import answer
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")

KEYS = ("k", "l")


def test_a_higher_limit_lets_more_go_at_once(driver: Driver) -> None:
    keyed(driver, 5)
    assert admit(driver) == 1

    limit(driver, "k", 3)

    assert (admit(driver), held(driver)) == (2, 3)


def test_a_lower_limit_keeps_running_tasks_and_starts_no_other(driver: Driver) -> None:
    keyed(driver, 4, slots=3)
    first, second, third = driver.claim("a", 10)
    limit(driver, "k", 1)

    driver.complete(first)
    driver.complete(second)
    assert (admit(driver), held(driver)) == (0, 1)
    driver.complete(third)

    assert admit(driver) == 1


def test_a_limit_of_zero_holds_all_tasks_until_an_operator_raises_it(driver: Driver) -> None:
    limit(driver, "k", 0)
    ids = keyed(driver, 2, slots=2)

    assert driver.claim("a", 10) == []
    assert standing(driver, *ids) == [("pending", "waiting")] * 2
    limit(driver, "k", 2)

    assert len(driver.claim("a", 10)) == 2
    query = "select actor, data ->> 'max' from treadle.events where kind = 'key.limited'"
    assert driver.rows(query) == [("tester", "0"), ("tester", "2")]


def test_the_latest_of_two_different_limits_wins(driver: Driver) -> None:
    keyed(driver, slots=3)
    keyed(driver, slots=1)

    assert (admit(driver), held(driver)) == (1, 1)
    keyed(driver, slots=4)
    admit(driver)

    assert driver.rows("select max from treadle.concurrency_keys") == [(4,)]


def test_the_same_limit_again_writes_nothing(driver: Driver) -> None:
    keyed(driver, slots=3)
    admit(driver)

    keyed(driver, slots=3, hold=True)

    assert driver.rows("select * from treadle.admissions") == []


def test_a_resumed_queue_continues_with_its_slots(driver: Driver) -> None:
    first, second = keyed(driver, 2)
    admit(driver)
    driver.rows("select treadle.pause_queue('default')")
    assert driver.claim("a", 10) == []

    driver.rows("select treadle.resume_queue('default')")

    claim = driver.claim_one()
    assert claim.id == first
    driver.complete(claim)
    assert driver.claim_one().id == second


def test_many_requests_for_one_key_do_not_hide_another(driver: Driver) -> None:
    """One key is in the hands of a session that takes its time."""
    busy = driver.another()
    keyed(driver)
    busy.rows("begin")
    admit(busy)
    keyed(driver, 20)
    other = driver.enqueue(concurrency_key="z")

    assert driver.value("select treadle.admit_waiting_tasks(2)") == 1
    busy.rows("rollback")

    assert standing(driver, other) == [("ready", "held")]


class Run:
    """Random calls about tasks of two keys, most of them sensible."""

    def __init__(self, driver: Driver, seed: int) -> None:
        self.driver = driver
        self.chance = random.Random(seed)
        self.claims: list[Claim] = []
        self.ids: list[UUID] = []

    def step(self) -> str:
        name = self.chance.choice(
            [
                *("add", "add", "claim", "claim", "end", "end", "put_aside", "cancel", "expire"),
                *("due", "retry", "depend", "answer", "limit", "admit", "graph"),
            ]
        )
        if name in ("cancel", "expire", "due", "retry", "depend") and not self.ids:
            return name
        if name in ("end", "put_aside") and not self.claims:
            return name
        with allowed("TR101", "TR102", "TR103"):
            getattr(self, name)()
        return name

    def add(self) -> None:
        extra: Record = self.chance.choice(
            [{}, {}, {"delay_s": 60}, {"priority": 10}, {"ageing_rate": 2}]
        )
        key = self.chance.choice(KEYS)
        self.ids.append(self.driver.enqueue(concurrency_key=key, max_attempts=2, **extra))

    def graph(self) -> None:
        nodes: list[Record] = [
            {"name": "a", "type": "code"},
            {"name": "b", "type": "code", "after": ["a"]},
        ]
        for node in nodes:
            node["concurrency_key"] = self.chance.choice(KEYS)
        self.ids += create(self.driver, nodes).ids.values()

    def claim(self) -> None:
        self.claims += self.driver.claim(self.chance.choice("ab"), self.chance.randint(1, 3))

    def end(self) -> None:
        claim = self.claims.pop(self.chance.randrange(len(self.claims)))
        way = self.chance.choice(["complete", "complete", "fail", "release"])
        if way == "fail":
            self.driver.fail(claim, retry_after=self.chance.choice([0, 60]))
        else:
            getattr(self.driver, way)(claim)

    def put_aside(self) -> None:
        claim = self.claims.pop()
        if self.chance.random() < 0.5:
            wait_for_answer(self.driver, claim)
        else:
            children = [{"type": "code", "concurrency_key": self.chance.choice(KEYS)}]
            suspend(self.driver, claim, spawn(self.driver, claim, children, str(uuid4())))

    def cancel(self) -> None:
        self.driver.cancel(self.chance.choice(self.ids))

    def expire(self) -> None:
        self.driver.age_claim(self.chance.choice(self.ids), timedelta(hours=1))
        self.driver.reap()

    def due(self) -> None:
        past = "retry_at - interval '1 day', run_at = run_at - interval '1 day'"
        self.driver.rows(f"update treadle.tasks set retry_at = {past}")
        self.driver.promote()

    def retry(self) -> None:
        self.driver.retry(self.chance.choice(self.ids))

    def depend(self) -> None:
        depend(self.driver, self.chance.choice(self.ids), self.chance.choice(self.ids))

    def answer(self) -> None:
        for (wait_id,) in self.driver.rows("select id from treadle.waits where status = 'open'"):
            answer(self.driver, wait_id, "yes")

    def limit(self) -> None:
        limit(self.driver, self.chance.choice(KEYS), self.chance.randint(0, 3))

    def admit(self) -> None:
        admit(self.driver)


@pytest.mark.parametrize("seed", range(6))
def test_in_a_random_run_no_key_has_too_many_and_no_slot_is_free_beside_a_task_that_waits(
    driver: Driver, seed: int
) -> None:
    run = Run(driver, seed)
    before = dict.fromkeys(KEYS, 0)
    for _ in range(150):
        name = run.step()
        slots = {key: driver.value("select treadle.key_limit(%s)", key) for key in KEYS}
        now = {key: held(driver, key) for key in KEYS}
        assert all(now[key] <= max(slots[key], before[key]) for key in KEYS), name

        while admit(driver):
            pass
        before = {key: held(driver, key) for key in KEYS}
        query = "select count(*) from treadle.tasks where concurrency_key = %s and slot = 'waiting'"
        for key in KEYS:
            slots[key] = driver.value("select treadle.key_limit(%s)", key)
            assert before[key] >= slots[key] or not driver.value(query, key), name
        assert driver.rows("select * from treadle.admissions") == []

    driver.rows("select treadle.cancel_tasks(array(select id from treadle.tasks))")
    assert leftovers(driver) == (0, 0)
