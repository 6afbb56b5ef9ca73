"""The same key means the same task, until that one was dead-lettered or cancelled."""

from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from treadle import Treadle

pytestmark = pytest.mark.requirement("R1")


def test_a_repeat_with_the_same_key_returns_the_existing_task(driver: Driver) -> None:
    [first] = driver.enqueue_batch([{"n": 1}], keys=["k"])

    [second] = driver.enqueue_batch([{"n": 2}], keys=["k"])

    assert (first.created, second.created) == (True, False)
    assert second.id == first.id
    assert driver.task(first.id)["spec"] == {"n": 1}
    assert driver.value("select count(*) from treadle.tasks") == 1


@pytest.mark.parametrize("state", ["running", "retrying", "completed"])
def test_a_task_keeps_its_key_while_it_works_and_after_it_is_completed(
    driver: Driver, state: str
) -> None:
    task_id = driver.enqueue(key="k")
    claim = driver.claim_one("a")
    if state == "retrying":
        driver.fail(claim)
    elif state == "completed":
        driver.complete(claim)
    assert driver.state_of(task_id) == state

    assert driver.enqueue(key="k") == task_id


@pytest.mark.parametrize("end", ["dead_lettered", "cancelled"])
def test_the_key_is_free_again_after_a_dead_letter_or_a_cancellation(
    driver: Driver, end: str
) -> None:
    first = driver.enqueue(key="k", max_attempts=1)
    if end == "cancelled":
        driver.cancel(first)
    else:
        driver.fail(driver.claim_one("a"))
    assert driver.state_of(first) == end

    second = driver.enqueue(key="k")

    assert second != first
    assert driver.enqueue(key="k") == second


def test_16_concurrent_enqueues_with_one_key_make_one_task(driver: Driver) -> None:
    ids = together(driver, 16, lambda session, _: session.enqueue(key="k"))

    assert len(set(ids)) == 1
    assert driver.value("select count(*) from treadle.tasks") == 1


def test_concurrent_batches_that_share_keys_make_each_task_once(driver: Driver) -> None:
    keys = [f"k{n}" for n in range(100)]

    def enqueue(session: Driver, number: int) -> list[UUID]:
        made = session.enqueue_batch([{}] * 100, keys=keys)
        return [each.id for each in made]

    first, *others = together(driver, 8, enqueue)

    assert len(set(first)) == 100
    assert all(other == first for other in others)
    assert driver.value("select count(*) from treadle.tasks") == 100


def test_a_caller_that_waited_for_a_key_creates_the_task_if_the_first_rolls_back(
    driver: Driver,
) -> None:
    task_id = while_held(
        driver,
        lambda held: held.enqueue(key="k"),
        lambda late: late.enqueue(key="k"),
        end="rollback",
    )

    assert driver.rows("select id from treadle.tasks") == [(task_id,)]


def test_a_caller_that_waited_for_a_key_gets_the_task_of_the_first(driver: Driver) -> None:
    ids = []

    late = while_held(
        driver,
        lambda held: ids.append(held.enqueue(key="k")),
        lambda late: late.enqueue(key="k"),
    )

    assert [late] == ids


def test_a_caller_that_waited_for_a_task_being_cancelled_creates_a_new_one(driver: Driver) -> None:
    # The first session takes the key and gives it up again in one transaction.
    late = while_held(
        driver,
        lambda held: held.cancel(held.enqueue(key="k")),
        lambda late: late.enqueue(key="k"),
    )

    assert driver.state_of(late) == "ready"
    assert driver.value("select count(*) from treadle.tasks where status = 'cancelled'") == 1


def test_a_key_twice_in_one_batch_is_one_task(driver: Driver) -> None:
    made = driver.enqueue_batch([{}, {}, {}], keys=["k", None, "k"])

    assert [each.created for each in made] == [True, True, False]
    assert made[0].id == made[2].id != made[1].id


def test_keys_belong_to_a_project(driver: Driver) -> None:
    one, other = str(uuid4()), str(uuid4())

    ids = [driver.enqueue(key="k", project_id=project) for project in (one, other, one)]
    without = driver.enqueue(key="k")

    assert ids[0] == ids[2]
    assert len({*ids, without}) == 3


def test_with_dedupe_the_key_is_made_from_the_content(driver: Driver) -> None:
    first = driver.enqueue({"a": 1, "b": 2}, dedupe=True)

    assert driver.enqueue({"b": 2, "a": 1}, dedupe=True) == first
    assert driver.enqueue({"a": 1, "b": 3}, dedupe=True) != first
    assert driver.enqueue({"a": 1, "b": 2}, type="test", dedupe=True) != first
    assert driver.enqueue({"a": 1, "b": 2}) != first
    assert driver.value(
        "select treadle.enqueue_task('default', 'code', %s, p_dedupe => true)",
        Jsonb({"a": 1, "b": 2}),
    ) == (first)


def test_with_dedupe_a_key_that_is_given_wins(driver: Driver) -> None:
    task_id = driver.enqueue({"a": 1}, key="k", dedupe=True)

    assert driver.task(task_id)["idempotency_key"] == "k"


def test_keys_are_bytes_so_two_spellings_of_a_letter_are_two_keys(driver: Driver) -> None:
    assert driver.enqueue(key="caf\u00e9") != driver.enqueue(key="cafe\u0301")


async def test_a_python_producer_sees_whether_its_task_was_new(
    app: Treadle, driver: Driver
) -> None:
    @app.task()
    async def greet(name: str) -> None: ...

    first = await greet.using(key="k").enqueue(name="ada")
    again = await greet.using(key="k").enqueue(name="ada")
    same = await greet.using(dedupe=True).enqueue(name="bob")
    same_again = await greet.using(dedupe=True).enqueue(name="bob")
    many = await greet.enqueue_many([{"name": "a"}, {"name": "b"}], keys=["k", None])

    assert (first.created, again.created, first.id) == (True, False, again.id)
    assert (same.created, same_again.created, same.id) == (True, False, same_again.id)
    assert [each.created for each in many] == [False, True]
    assert many[0].id == first.id
