"""A task is stored as requested, alone or in a batch."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F1")


def test_a_person_enqueues_a_task_from_psql(driver: Driver) -> None:
    task_id = driver.value("select treadle.enqueue_task('default', 'code', '{\"prompt\": \"…\"}')")

    task = driver.task(task_id)
    assert (task["queue"], task["type"], task["spec"]) == ("default", "code", {"prompt": "…"})
    assert (task["status"], task["priority"], task["attempt"]) == ("ready", 50, 0)
    assert (task["max_attempts"], task["created_by"]) == (3, "postgres")


def test_a_batch_returns_one_id_for_each_spec_in_order(driver: Driver) -> None:
    made = driver.enqueue_batch([{"n": n} for n in range(1000)])

    stored = {row[0]: row[1]["n"] for row in driver.rows("select id, spec from treadle.tasks")}
    assert [stored[each.id] for each in made] == list(range(1000))
    assert all(each.created for each in made)


def test_ids_sort_by_the_order_in_which_tasks_were_made(driver: Driver) -> None:
    ids = [each.id for each in driver.enqueue_batch([{}] * 200)]
    ids += [driver.enqueue() for _ in range(20)]

    assert ids == sorted(ids)


def test_mixed_tasks_are_enqueued_in_one_call_and_returned_in_order(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('night', '{}')")
    tasks = [
        {"type": "code", "spec": {"n": 0}, "priority": 10},
        {"type": "test", "spec": {"n": 1}, "delay_s": 60, "idempotency_key": "nightly"},
        {"type": "code", "spec": {"n": 2}, "priority": 10},
        {"type": "code", "queue": "night"},
        {"type": "test", "spec": {"n": 1}, "delay_s": 60, "idempotency_key": "nightly"},
    ]

    rows = driver.rows("select id, created from treadle.enqueue_tasks(%s)", Jsonb(tasks))

    found = [driver.task(task_id) for task_id, _ in rows]
    assert [row[1] for row in rows] == [True, True, True, True, False]
    assert rows[4][0] == rows[1][0]
    assert [task["spec"].get("n") for task in found] == [0, 1, 2, None, 1]
    assert [task["status"] for task in found] == ["ready", "pending", "ready", "ready", "pending"]
    assert [task["queue"] for task in found] == ["default"] * 3 + ["night", "default"]
    assert [task["priority"] for task in found] == [10, 50, 10, 50, 50]


def test_nothing_is_enqueued_by_empty_lists(driver: Driver) -> None:
    assert driver.enqueue_batch([]) == []
    assert driver.rows("select * from treadle.enqueue_tasks('[]')") == []
    assert driver.value("select count(*) from treadle.tasks") == 0


def test_options_default_to_the_type_and_then_to_the_queue(driver: Driver) -> None:
    driver.rows(
        "select treadle.define_queue('q', %s)",
        Jsonb({"priority": 80, "max_attempts": 8, "timeout_s": 800, "ageing_rate": 0.8}),
    )
    driver.rows("select treadle.define_type('t', %s)", Jsonb({"priority": 70, "max_attempts": 7}))

    inherits = driver.task(driver.enqueue(queue="q", type="t"))
    says = driver.task(driver.enqueue(queue="q", type="t", priority=1, timeout_s=5))

    assert (inherits["priority"], inherits["max_attempts"], inherits["timeout_s"]) == (70, 7, 800)
    assert (says["priority"], says["max_attempts"], says["timeout_s"]) == (1, 7, 5)
    rates = driver.rows("select distinct ageing_rate from treadle.task_details")
    assert [float(row[0]) for row in rates] == [0.8]


def test_every_option_is_stored(driver: Driver) -> None:
    parent, project = uuid4(), uuid4()
    options: dict[str, Any] = {
        "priority": 3,
        "timeout_s": 12.5,
        "max_attempts": 9,
        "ageing_rate": 0.25,
        "capabilities": ["git"],
        "assigned_agent": "a",
        "retry": {"strategy": "fixed"},
        "validation": [{"validator": "none"}],
        "consumer": "harness",
        "title": "a title",
        "tags": ["x", "y"],
        "created_by": "human:adam",
        "source": "web",
        "source_job": "nightly",
        "external_ref": "PR-1",
        "notes": "a note",
        "max_cost_usd": 0.5,
    }

    task = driver.task(
        driver.enqueue(
            **options,
            deadline_at="2040-01-01T00:00:00Z",
            parent_id=str(parent),
            project_id=str(project),
        )
    )

    assert {name: task[name] for name in options} == options
    assert task["deadline_at"] == datetime(2040, 1, 1, tzinfo=UTC)
    assert (task["parent_id"], task["project_id"]) == (parent, project)


def test_a_held_task_is_created_and_stays_so(driver: Driver) -> None:
    task_id = driver.enqueue(hold=True)

    assert driver.state_of(task_id) == "created"
    assert driver.promote() == []


@pytest.mark.parametrize("how", ["run_at", "delay_s"])
def test_a_task_with_a_time_to_run_waits_for_it(driver: Driver, how: str) -> None:
    later = datetime.now(tz=UTC) + timedelta(hours=1)
    options = {"run_at": later.isoformat()} if how == "run_at" else {"delay_s": 3600}

    task = driver.task(driver.enqueue(**options))

    assert task["status"] == "pending"
    assert abs(task["run_at"] - later) < timedelta(seconds=30)


def test_a_time_to_run_that_is_past_means_now(driver: Driver) -> None:
    past = datetime.now(tz=UTC) - timedelta(days=1)

    assert driver.state_of(driver.enqueue(run_at=past.isoformat())) == "ready"
    assert driver.state_of(driver.enqueue(delay_s=0)) == "ready"


def test_the_arguments_of_enqueue_task_may_be_given_by_name(driver: Driver) -> None:
    task_id: UUID = driver.value(
        """
        select treadle.enqueue_task(
          'default', 'code', '{}', p_priority => 10, p_delay_s => 60,
          p_idempotency_key => 'k', p_options => '{"title": "x"}'
        )
        """
    )

    task = driver.task(task_id)
    assert (task["priority"], task["idempotency_key"], task["title"]) == (10, "k", "x")
    assert task["status"] == "pending"
