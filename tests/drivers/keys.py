"""Tasks with concurrency keys, and the slots that they hold."""

from typing import Any
from uuid import UUID

from tests.drivers.engine import Driver
from tests.drivers.waits import ask
from treadle.models import Claim


def admit(driver: Driver) -> int:
    """Assign free slots, as the promoter does."""
    return int(driver.value("select treadle.admit_waiting_tasks()"))


def held(driver: Driver, key: str = "k") -> int:
    """Slots of a key that are in use."""
    query = "select count(*) from treadle.tasks where concurrency_key = %s and slot = 'held'"
    return int(driver.value(query, key))


def standing(driver: Driver, *ids: UUID) -> list[tuple[str, str | None]]:
    """The state and the slot of each task."""
    found = {each: driver.task(each) for each in ids}
    return [(found[each]["status"], found[each]["slot"]) for each in ids]


def limit(driver: Driver, key: str, slots: int) -> None:
    driver.rows("select treadle.set_concurrency_limit(%s, %s, 'tester')", key, slots)


def leftovers(driver: Driver) -> tuple[int, int]:
    """Slots in use and tasks that wait for one, over all keys."""
    query = """
    select count(*) filter (where slot = 'held'), count(*) filter (where slot = 'waiting')
    from treadle.tasks
    """
    [(held, waiting)] = driver.rows(query)
    return held, waiting


def keyed(driver: Driver, count: int = 1, slots: int = 1, **options: Any) -> list[UUID]:
    """Tasks of the key k with a number of slots, none of which is assigned yet."""
    given: dict[str, Any] = {"concurrency_key": "k", "concurrency_limit": slots, **options}
    return [driver.enqueue(**given) for _ in range(count)]


def wait_for_answer(driver: Driver, claim: Claim) -> UUID:
    """Let a claimed task wait for a person."""
    wait_id = ask(driver, claim)
    driver.rows(
        "select treadle.suspend_task(%s, %s, p_waits => %s)", claim.id, claim.token, [wait_id]
    )
    return wait_id
