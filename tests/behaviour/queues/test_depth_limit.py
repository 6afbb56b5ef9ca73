"""A queue with max_depth accepts exactly that many waiting tasks, also under concurrency."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import node
from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle
from treadle.errors import QueueFull


def cap(driver: Driver, depth: int | None, queue: str = "default") -> None:
    driver.rows("select treadle.define_queue(%s, %s)", queue, Jsonb({"max_depth": depth}))


def offer(driver: Driver, **options: Any) -> UUID | None:
    """Enqueue a task; None when the queue is full."""
    try:
        return driver.enqueue(**options)
    except psycopg.DatabaseError as error:
        if error.sqlstate != "TR105":
            raise
        return None


def waiting(driver: Driver) -> int:
    query = "select depth from treadle.queue_health where queue = 'default'"
    return int(driver.value(query))


@pytest.mark.parametrize("clients", [16, 64])
def test_concurrent_submitters_against_a_capacity_of_50_get_exactly_50_in(
    driver: Driver, clients: int
) -> None:
    """The exact depth limit that an HTTP face relies on: 64 submitters, 50 accepted."""
    cap(driver, 50)
    each = 1 if clients == 64 else 8

    made = together(driver, clients, lambda session, _: [offer(session) for _ in range(each)])

    accepted = [task_id for tasks in made for task_id in tasks if task_id]
    assert (len(accepted), waiting(driver)) == (50, 50)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_limit_is_exact_for_transactions_that_keep_their_snapshot(
    driver: Driver, level: str
) -> None:
    """They see an old count, so one of two that collide must start again."""
    cap(driver, 20)

    def produce(session: Driver, _: int) -> int:
        session.rows(f"set default_transaction_isolation to '{level}'")
        made = 0
        for _ in range(4):
            while True:
                try:
                    made += offer(session) is not None
                    break
                except psycopg.errors.SerializationFailure:
                    continue
        return made

    assert sum(together(driver, 16, produce)) == 20
    assert waiting(driver) == 20


def test_a_snapshot_from_before_another_producer_is_not_trusted(driver: Driver) -> None:
    cap(driver, 2)
    driver.enqueue()
    old = driver.another()
    old.rows("begin isolation level repeatable read")
    assert old.value("select count(*) from treadle.tasks") == 1
    driver.enqueue()

    with refused("40001"):
        old.enqueue()
    old.rows("rollback")


def test_a_producer_waits_for_another_before_it_counts(driver: Driver) -> None:
    cap(driver, 1)

    assert while_held(driver, lambda first: first.enqueue(), offer) is None
    driver.cancel(*[row[0] for row in driver.rows("select id from treadle.tasks")])
    assert while_held(driver, lambda first: first.enqueue(), offer, end="rollback")


def test_the_error_of_a_full_queue_has_its_name_depth_and_a_hint(driver: Driver) -> None:
    cap(driver, 2)
    driver.enqueue_batch([{}, {}])

    with unchanged(driver), pytest.raises(psycopg.DatabaseError) as raised:
        driver.enqueue()

    diag = raised.value.diag
    assert (diag.sqlstate, diag.message_primary) == (
        "TR105",
        "queue default has no room for 1 more: 2 of at most 2 tasks are waiting",
    )
    assert '"depth": 2' in (diag.message_detail or "")
    assert "later" in (diag.message_hint or "")


def test_a_batch_is_stored_completely_or_not_at_all(driver: Driver) -> None:
    cap(driver, 5)
    driver.enqueue_batch([{}] * 3)

    with unchanged(driver), refused("TR105"):
        driver.enqueue_batch([{}] * 3)

    driver.enqueue_batch([{}] * 2)


def test_every_waiting_state_counts_and_what_is_in_flight_does_not(driver: Driver) -> None:
    cap(driver, 4)
    driver.enqueue()
    claim = driver.claim_one()
    driver.enqueue()
    driver.fail(driver.claim_one("b"), retry_after=60)
    driver.enqueue(hold=True)
    driver.enqueue(delay_s=60)
    driver.enqueue(concurrency_key="k")
    assert waiting(driver) == 4

    assert offer(driver) is None
    assert driver.release(claim) == "released"
    assert waiting(driver) == 5


def test_a_task_that_returns_to_a_full_queue_is_accepted(driver: Driver) -> None:
    cap(driver, 1)
    driver.enqueue()
    claim = driver.claim_one()
    other = driver.enqueue()

    driver.fail(claim, action="fail")
    driver.retry(claim.id)

    assert {driver.state_of(claim.id), driver.state_of(other)} == {"ready"}
    assert offer(driver) is None


def test_a_repeat_with_the_same_key_creates_no_task(driver: Driver) -> None:
    cap(driver, 1)
    first = driver.enqueue(key="one")

    assert driver.enqueue(key="one") == first


def test_earlier_tasks_count_against_a_new_limit_until_it_is_removed(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 3)
    running = driver.claim_one()
    cap(driver, 3)

    assert offer(driver) is not None
    assert offer(driver) is None
    driver.release(running)
    cap(driver, None)
    driver.enqueue_batch([{}] * 10)
    cap(driver, 14)

    assert offer(driver) is None


def test_every_way_in_is_counted(driver: Driver) -> None:
    cap(driver, 1)
    first = driver.enqueue()
    dag = Jsonb({"name": "d", "tasks": [node("a")]})
    ways = [
        ("select treadle.create_dag(%s)", [dag]),
        ("select treadle.enqueue_tasks(%s)", [Jsonb([{"type": "code"}])]),
        ("insert into treadle.tasks (type) values ('code')", []),
        ("select treadle.enqueue_task('default', 'code', '{}')", []),
    ]

    for query, given in ways:
        with unchanged(driver), refused("TR105"):
            driver.rows(query, *given)
    driver.cancel(first)
    for query, given in ways:
        driver.rows(query, *given)
        driver.rows("select treadle.cancel_tasks(array(select id from treadle.tasks))")


def test_other_queues_are_not_held_up_by_a_producer_of_a_full_one(driver: Driver) -> None:
    cap(driver, 5)
    driver.rows("select treadle.define_queue('free')")

    made = while_held(
        driver,
        lambda first: first.enqueue(),
        lambda second: second.enqueue(queue="free"),
        waits=False,
    )

    assert driver.state_of(made) == "ready"


def test_a_limit_that_is_none_is_refused(driver: Driver) -> None:
    for wrong in (0, -1, 1.5, "many"):
        with unchanged(driver), refused("TR001"):
            driver.rows("select treadle.define_queue('q', %s)", Jsonb({"max_depth": wrong}))


async def test_python_gets_queue_full_with_the_numbers(app: Treadle, driver: Driver) -> None:
    cap(driver, 1)
    await app.enqueue("code", {})

    with pytest.raises(QueueFull, match="no room for 1 more") as raised:
        await app.enqueue("code", {})

    assert raised.value.detail == {"queue": "default", "depth": 1, "limit": 1}
