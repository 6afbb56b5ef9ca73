"""Steps, spend, artifacts, forks and inputs of a running task."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle.models import Claim

MIB = 1024 * 1024


def claimed(driver: Driver, agent: str = "a", **options: Any) -> Claim:
    """A claim on a new task that is retried at once."""
    task_id = driver.enqueue(**{"retry": {"strategy": "immediate"}, **options})
    claim = driver.claim_one(agent)
    assert claim.id == task_id
    return claim


def written(driver: Driver, **options: Any) -> Claim:
    """A claim on a task that has outlined, drafted and checked."""
    claim = claimed(driver, **{"spec": {"topic": "cats", "tone": "dry"}, **options})
    for name in ("outline", "draft", "check"):
        save_step(driver, claim, name, f"{name} of cats", input_hash=name, calls=[{"usd": 1}])
    return claim


def superseded(driver: Driver) -> tuple[Claim, Claim]:
    """An expired claim of agent a, and the claim of agent b that replaced it."""
    first = claimed(driver)
    driver.expire(first)
    second = driver.claim_one("b")
    assert second.id == first.id
    return first, second


def completed(driver: Driver, output: object, **options: Any) -> UUID:
    """A task that has ended with this output."""
    claim = claimed(driver, **options)
    assert driver.complete(claim, output) == "completed"
    return claim.id


def save_step(
    driver: Driver,
    claim: Claim,
    name: str | None = "draft",
    output: object = None,
    *,
    calls: object = None,
    **options: Any,
) -> tuple[Any, bool]:
    """The output saved under the name, and whether it is this one."""
    given = "".join(f", p_{option} => %s" for option in options)
    [row] = driver.rows(
        f"select output, saved from treadle.save_step(%s, %s, %s, %s, p_calls => %s{given})",
        *(claim.id, claim.token, name, Jsonb(output), Jsonb([] if calls is None else calls)),
        *options.values(),
    )
    return row[0], row[1]


def steps(driver: Driver, task_id: UUID) -> list[Record]:
    return driver.records("select * from treadle.steps where task_id = %s order by seq", task_id)


def step_names(driver: Driver, task_id: UUID) -> list[str]:
    return [step["name"] for step in steps(driver, task_id)]


def record_spend(driver: Driver, claim: Claim, calls: object) -> Decimal:
    query = "select cost_usd from treadle.record_spend(%s, %s, %s)"
    return Decimal(driver.value(query, claim.id, claim.token, Jsonb(calls)))


def spend(driver: Driver, task_id: UUID) -> list[Record]:
    query = "select * from treadle.spend where task_id = %s order by call_id"
    return driver.records(query, task_id)


def cost(driver: Driver, task_id: UUID) -> tuple[Decimal, int, int]:
    """Dollars, input tokens and output tokens of a task."""
    task = driver.task(task_id)
    return task["cost_usd"], task["input_tokens"], task["output_tokens"]


def record_artifact(
    driver: Driver,
    claim: Claim,
    name: str | None = "report.pdf",
    uri: str | None = "s3://reports/7.pdf",
    media_type: str | None = None,
    size: int | None = None,
    sha256: str | None = None,
) -> UUID:
    query = "select treadle.record_artifact(%s, %s, %s, %s, %s, %s, %s)"
    given = (claim.id, claim.token, name, uri, media_type, size, sha256)
    return UUID(str(driver.value(query, *given)))


def fork(
    driver: Driver, task_id: UUID, step: str | None, changes: object = None, actor: str = "tester"
) -> UUID:
    query = "select treadle.fork_task(%s, %s, %s, %s)"
    given = None if changes is None else Jsonb(changes)
    return UUID(str(driver.value(query, task_id, step, given, actor)))


def refer(driver: Driver, task_id: UUID, inputs: object) -> None:
    """Set the inputs of a task."""
    query = "update treadle.tasks set inputs = %s where id = %s"
    driver.rows(query, Jsonb(inputs), task_id)


def depend(driver: Driver, task_id: UUID, on: UUID, *, optional: bool, met: bool) -> None:
    """Note an edge between two tasks as it is once the dependent can be claimed."""
    query = """
        insert into treadle.dependencies (task_id, depends_on, optional, met_at)
        values (%s, %s, %s, case when %s then clock_timestamp() end)
    """
    driver.rows(query, task_id, on, optional, met)


def resolve(driver: Driver, task_id: UUID) -> tuple[Any, str | None]:
    """The spec that a claim would get, or the problem."""
    query = """
        select filled.spec, filled.problem
        from treadle.tasks cross join lateral treadle.resolve_inputs(tasks) as filled
        where tasks.id = %s
    """
    [row] = driver.rows(query, task_id)
    return row[0], row[1]
