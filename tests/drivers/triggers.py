"""Triggers through their SQL functions: define, emit, fire, and read the results."""

from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record

FOLLOW = {"type": "review", "spec": {"of": {"$event": "data", "default": None}}}


class Fire(NamedTuple):
    """A row of fire_triggers."""

    id: UUID
    event_id: int
    task_id: UUID | None
    dag_id: UUID | None
    problem: str | None


def define(driver: Driver, name: str = "t", on: str | None = "paid", **settings: Any) -> UUID:
    """A trigger that enqueues a review, unless the settings say otherwise."""
    if not settings.keys() & {"task", "dag"}:
        settings["task"] = FOLLOW
    if on is not None:
        settings["on"] = on
    made = driver.value(
        "select id from treadle.define_trigger(%s, %s, 'tester')", name, Jsonb(settings)
    )
    assert isinstance(made, UUID)
    return made


def emit(driver: Driver, event: str = "paid", data: Any = None, key: str = "", **more: Any) -> int:
    """Something happens; its number."""
    given = "".join(f", p_{name} => %s" for name in more)
    query = f"select treadle.emit_event(%s, %s, %s{given})"
    return int(driver.value(query, event, Jsonb({} if data is None else data), key, *more.values()))


def fire(driver: Driver, limit: int = 500) -> list[Fire]:
    """What follows from all that happened."""
    return [Fire(*row) for row in driver.rows("select * from treadle.fire_triggers(%s)", limit)]


def fire_one(driver: Driver) -> Fire:
    [made] = fire(driver)
    return made


def trigger(driver: Driver, name: str = "t") -> Record:
    [row] = driver.records("select * from treadle.triggers where name = %s", name)
    return row


def made(driver: Driver, name: str = "t") -> list[UUID]:
    """The tasks of a trigger, in order."""
    query = """
        select task_id from treadle.task_options
        where source = 'trigger' and source_job = %s order by task_id
    """
    return [row[0] for row in driver.rows(query, name)]


def kinds(driver: Driver, like: str = "trigger.%") -> list[str]:
    query = "select kind from treadle.events where kind like %s order by id"
    return [row[0] for row in driver.rows(query, like)]


def finish(driver: Driver, output: object = None, *, types: list[str] | None = None) -> UUID:
    """Claim the next task and complete it."""
    claim = driver.claim_one(types=types)
    assert driver.complete(claim, output) == "completed"
    return claim.id


def fill_queue(driver: Driver) -> None:
    """A queue that is full, and a trigger that enqueues there."""
    driver.rows("""select treadle.define_queue('small', '{"max_depth": 1}')""")
    driver.enqueue(queue="small")
    define(driver, task={"type": "code", "queue": "small"})


def make_room(driver: Driver) -> None:
    driver.complete(driver.claim_one(queues=["small"]))
