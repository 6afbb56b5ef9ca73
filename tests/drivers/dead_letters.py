"""Create dead letters and resolve them."""

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record


def dead(
    driver: Driver,
    error: str = "boom",
    failure_class: str = "error",
    *,
    spec: Record | None = None,
    agent: str = "a",
    **options: Any,
) -> UUID:
    """A task that was dead-lettered at its first attempt."""
    task_id = driver.enqueue(spec or {}, **{"priority": 0, **options})
    claim = driver.claim_one(agent, queues=[options.get("queue", "default")])
    assert claim.id == task_id
    driver.fail(claim, error, failure_class=failure_class, action="fail")
    return task_id


def resolve(
    driver: Driver, ids: list[UUID], resolution: str = "retry", **more: Any
) -> dict[UUID, Record]:
    """Resolve letters as ada; return the verdict of each by the given id."""
    more = {"actor": "ada", **more}
    if "changes" in more:
        more["changes"] = Jsonb(more["changes"])
    given = "".join(f", p_{name} => %s" for name in more)
    rows = driver.records(
        f"select * from treadle.resolve_dead_letters(%s, %s{given})",
        ids,
        resolution,
        *more.values(),
    )
    return {row["id"]: row for row in rows}


def verdicts(
    driver: Driver, ids: list[UUID], resolution: str = "retry", **more: Any
) -> dict[UUID, str]:
    return {each: row["verdict"] for each, row in resolve(driver, ids, resolution, **more).items()}


def resolve_where(
    driver: Driver, filters: object, resolution: str = "retry", **more: Any
) -> dict[str, int]:
    """Resolve the letters of a filter; return their number by verdict."""
    rows = where_rows(driver, filters, resolution, **more)
    found: dict[str, int] = {}
    for row in rows:
        found[row["verdict"]] = found.get(row["verdict"], 0) + row["letters"]
    return found


def where_rows(
    driver: Driver, filters: object, resolution: str = "retry", **more: Any
) -> list[Record]:
    if "changes" in more:
        more["changes"] = Jsonb(more["changes"])
    given = "".join(f", p_{name} => %s" for name in more)
    return driver.records(
        f"select * from treadle.resolve_dead_letters_where(%s, %s{given})",
        Jsonb(filters),
        resolution,
        *more.values(),
    )


def letter_of(driver: Driver, task_id: UUID) -> Record:
    """The last letter of a task."""
    rows = driver.records(
        "select * from treadle.dead_letters where task_id = %s order by dead_lettered_at desc",
        task_id,
    )
    return rows[0]


def decisions(driver: Driver, task_id: UUID) -> list[Record]:
    """The decisions about a task, oldest first."""
    return driver.records(
        "select * from treadle.dead_letter_decision_log where task_id = %s order by id", task_id
    )
