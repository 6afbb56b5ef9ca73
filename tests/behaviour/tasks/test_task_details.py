"""Every field of a task can be read by SQL, under the names of the view task_details."""

from datetime import timedelta
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F1")

# Field of the task schema -> column of the view.
FIELDS = {
    "id": "id",
    "idempotency_key": "idempotency_key",
    "parent_id": "parent_id",
    "dag_id": "dag_id",
    "type": "type",
    "title": "title",
    "spec": "spec",
    "spec.constraints.max_cost_usd": "max_cost_usd",
    "spec.constraints.max_duration_sec": "timeout_s",
    "spec.constraints.required_capabilities": "capabilities",
    "priority": "priority",
    "priority_boost_per_minute": "ageing_rate",
    "deadline": "deadline_at",
    "depends_on": "depends_on",
    "blocked_by": "blocked_by",
    "status": "status",
    "claim.agent_id": "agent_id",
    "claim.claimed_at": "claimed_at",
    "claim.heartbeat_at": "heartbeat_at",
    "attempts": "attempt",
    "max_attempts": "max_attempts",
    "retry": "retry",
    "output.validation": "validation",
    "output.data": "output",
    "output.artifacts": "artifacts",
    "created_at": "created_at",
    "created_by": "created_by",
    "started_at": "started_at",
    "completed_at": "completed_at",
    "cost_usd": "cost_usd",
    "tokens_used.input": "input_tokens",
    "tokens_used.output": "output_tokens",
    "tags": "tags",
}
# Of the retry policy, under the key retry.
POLICY = {
    "strategy",
    "initial_delay_s",
    "multiplier",
    "max_delay_s",
    "jitter",
    "retry_on",
    "no_retry_on",
}


def test_every_field_of_the_task_schema_is_a_column(driver: Driver) -> None:
    task_id = driver.enqueue()

    [row] = driver.records("select * from treadle.task_details where id = %s", task_id)

    assert set(FIELDS.values()) - set(row) == set()
    assert set(row["retry"]) >= POLICY


def test_every_column_of_a_task_but_its_machinery_is_in_the_view(driver: Driver) -> None:
    columns = """
        select column_name from information_schema.columns
        where table_schema = 'treadle' and table_name = %s
    """
    table = {row[0] for row in driver.rows(columns, "tasks")}
    view = {row[0] for row in driver.rows(columns, "task_details")}

    assert table - view == {
        *("rank", "lane_id", "blocked_count", "durable", "budgeted", "capped", "rerank_at"),
        *("delayed_at", "earlier_attempts"),
        *("claim_token", "last_token", "has_options"),
    }


def test_the_fields_hold_what_was_asked_for_and_what_happened(driver: Driver) -> None:
    parent = uuid4()
    driver.agent("coder", capabilities=["git"])
    task_id = driver.enqueue(
        {"prompt": "p"},
        key="pr-123-lint",
        parent_id=str(parent),
        title="lint",
        tags=["repo:x"],
        created_by="cron:nightly",
        priority=20,
        ageing_rate=0.5,
        timeout_s=300,
        max_cost_usd=0.5,
        capabilities=["git"],
        retry={"strategy": "fixed"},
    )
    claim = driver.claim_one("coder")
    driver.heartbeat(claim, {"value": 0.5})

    [row] = driver.records("select * from treadle.task_details where id = %s", task_id)

    assert (row["idempotency_key"], row["parent_id"], row["title"]) == (
        "pr-123-lint",
        parent,
        "lint",
    )
    assert (row["spec"], row["tags"], row["created_by"]) == (
        {"prompt": "p"},
        ["repo:x"],
        "cron:nightly",
    )
    assert (row["priority"], float(row["ageing_rate"]), row["timeout_s"]) == (20, 0.5, 300)
    assert (float(row["max_cost_usd"]), row["capabilities"]) == (0.5, ["git"])
    assert (row["status"], row["agent_id"], row["attempt"]) == ("running", "coder", 1)
    assert (row["progress"], row["retry"]["strategy"]) == ({"value": 0.5}, "fixed")
    assert row["claimed_at"] is not None
    assert row["heartbeat_at"] is not None


def test_the_effective_priority_shows_what_waiting_has_gained(driver: Driver) -> None:
    task_id = driver.enqueue(priority=50, ageing_rate=2)
    driver.rows(
        "update treadle.tasks set rank = rank - 30 * 1000000 * 2, created_at = created_at - %s",
        timedelta(minutes=30),
    )

    [row] = driver.records("select * from treadle.task_details where id = %s", task_id)

    assert -11 < float(row["effective_priority"]) < -9
    exact = driver.value("select treadle.effective_priority(%s)", task_id)
    assert abs(float(exact) - float(row["effective_priority"])) < 0.1


def test_what_a_task_depends_on_and_what_of_it_is_not_done_yet(driver: Driver) -> None:
    task_id, done, open_one = driver.enqueue(hold=True), driver.enqueue(), driver.enqueue()
    for other in (done, open_one):
        driver.rows("select treadle.add_dependency(%s, %s)", task_id, other)
    driver.complete(driver.claim_one("a"))

    [row] = driver.records("select * from treadle.task_details where id = %s", task_id)

    assert sorted(row["depends_on"]) == sorted([done, open_one])
    assert row["blocked_by"] == [open_one]


def test_the_policy_shown_is_the_one_in_force(driver: Driver) -> None:
    task_id = driver.enqueue()
    driver.rows("select treadle.define_type('code', %s)", Jsonb({"retry": {"initial_delay_s": 60}}))

    policy = driver.value("select retry from treadle.task_details where id = %s", task_id)

    assert (policy["initial_delay_s"], policy["strategy"]) == (60, "exponential")
