"""Each completed result is handed to its consumer once."""

from uuid import UUID, uuid4

from tests.drivers.engine import Driver
from tests.drivers.races import flat, together
from tests.drivers.refusals import unchanged


def completed(driver: Driver, count: int, consumer: str | None = "harness") -> list[UUID]:
    """So many completed tasks for a consumer, in the order of their completion."""
    options = {} if consumer is None else {"consumer": consumer}
    driver.enqueue_batch([{"n": n} for n in range(count)], **options)
    claims = driver.claim("a", count)
    for claim in claims:
        driver.complete(claim, {"n": claim.spec["n"]})
    return [claim.id for claim in claims]


def take(driver: Driver, limit: int = 100, token: UUID | None = None) -> list[UUID]:
    """The ids of the results that were handed out."""
    rows = driver.rows("select id from treadle.take_results('harness', %s, %s)", limit, token)
    return [row[0] for row in rows]


def test_a_result_is_taken_once_with_its_spec_and_output(driver: Driver) -> None:
    [task_id] = completed(driver, 1)

    [row] = driver.records("select * from treadle.take_results('harness')")

    assert (row["id"], row["spec"], row["output"]) == (task_id, {"n": 0}, {"n": 0})
    assert (row["queue"], row["type"], row["completed_by"]) == ("default", "code", "a")
    assert take(driver) == []
    assert driver.task(task_id)["consumed_at"] is not None


def test_results_come_in_the_order_of_their_completion(driver: Driver) -> None:
    ids = completed(driver, 7)

    assert [take(driver, 3), take(driver, 3), take(driver, 3)] == [ids[:3], ids[3:6], ids[6:]]


def test_a_repeat_with_its_token_returns_the_same_results(driver: Driver) -> None:
    completed(driver, 5)
    token = uuid4()
    first = take(driver, 3, token)

    with unchanged(driver):
        assert take(driver, 3, token) == first

    assert len(first) == 3
    assert len(take(driver)) == 2


def test_a_repeat_after_more_was_completed_still_returns_the_same(driver: Driver) -> None:
    first = completed(driver, 2)
    token = uuid4()
    take(driver, 100, token)
    completed(driver, 3)

    assert take(driver, 100, token) == first


def test_eight_takers_at_once_get_each_result_once(driver: Driver) -> None:
    ids = completed(driver, 400)

    def take_all(session: Driver, _: int) -> list[UUID]:
        found = []
        while taken := take(session, 10):
            found += taken
        return found

    taken = flat(together(driver, 8, take_all))

    assert sorted(taken + take(driver, 1000)) == sorted(ids)


def test_a_consumer_gets_only_its_own_results(driver: Driver) -> None:
    completed(driver, 1, consumer="somebody")
    completed(driver, 1, consumer=None)

    assert take(driver) == []


def test_only_completed_tasks_have_results(driver: Driver) -> None:
    driver.enqueue(consumer="harness", max_attempts=1)
    driver.fail(driver.claim_one("a"))
    driver.cancel(driver.enqueue(consumer="harness"))
    driver.enqueue(consumer="harness")

    assert take(driver) == []


def test_a_taker_that_rolls_back_leaves_the_results_to_others(driver: Driver) -> None:
    ids = completed(driver, 2)
    driver.rows("begin")
    assert take(driver) == ids
    assert take(driver.another()) == [], "held by the first"
    driver.rows("rollback")

    assert take(driver) == ids
