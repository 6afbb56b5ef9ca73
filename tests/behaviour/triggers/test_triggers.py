"""An event creates a task or a DAG exactly once, with values of the event."""

from uuid import UUID

import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.triggers import define, emit, finish, fire, fire_one, trigger


@pytest.mark.requirement("F18")
def test_an_emitted_event_enqueues_a_task_with_its_values(driver: Driver) -> None:
    define(
        driver,
        task={
            "type": "review",
            "queue": "default",
            "priority": {"$event": "data.urgency"},
            "title": {"$event": "key"},
            "tags": ["bill", {"$event": "data.country"}],
            "spec": {"amount": {"$event": "data.amount"}, "all": {"$event": "data"}, "by": "us"},
        },
    )
    data = {"amount": 12.5, "country": "fr", "urgency": 7}

    event = emit(driver, data=data, key="4711")
    fired = fire_one(driver)

    assert (fired.event_id, fired.dag_id, fired.problem) == (event, None, None)
    assert fired.task_id is not None
    task = driver.task(fired.task_id)
    assert task["spec"] == {"amount": 12.5, "all": data, "by": "us"}
    assert (task["priority"], task["title"], task["tags"]) == (7, "4711", ["bill", "fr"])
    assert (task["source"], task["source_job"], task["created_by"]) == ("trigger", "t", "tester")
    assert task["status"] == "ready"
    row = trigger(driver)
    assert (row["fired"], row["last_task"], row["failed"]) == (1, fired.task_id, 0)


@pytest.mark.requirement("F18")
def test_a_dag_that_is_completed_starts_the_next_dag(driver: Driver) -> None:
    define(
        driver,
        on="dag.completed",
        filter={"dag": {"name": "crawl"}},
        dag={
            "name": {"$event": "dag.meta.next"},
            "meta": {"after": {"$event": "dag_id"}},
            "tasks": [
                {"name": "a", "type": "code", "spec": {"of": {"$event": "data.name"}}},
                {"name": "b", "type": "test", "after": ["a"]},
            ],
        },
    )
    for name in ("other", "crawl"):
        driver.rows(
            "select treadle.create_dag(jsonb_build_object('name', %s::text, 'meta',"
            """ '{"next": "report"}'::jsonb, 'tasks', '[{"type": "code"}]'::jsonb))""",
            name,
        )
        finish(driver)

    fired = fire_one(driver)

    assert fired.task_id is None
    [dag] = driver.records("select * from treadle.dags where id = %s", fired.dag_id)
    assert (dag["name"], dag["status"], dag["created_by"]) == ("report", "running", "tester")
    query = "select * from treadle.task_details where dag_id = %s order by id"
    tasks = driver.records(query, dag["id"])
    assert [(task["name"], task["status"]) for task in tasks] == [("a", "ready"), ("b", "pending")]
    assert tasks[0]["spec"] == {"of": "crawl"}
    assert {task["source_job"] for task in tasks} == {"t"}
    assert trigger(driver)["last_dag"] == fired.dag_id


@pytest.mark.requirement("F18")
def test_a_completed_task_of_a_type_hands_its_output_on(driver: Driver) -> None:
    define(
        driver,
        on="task.completed",
        filter={"type": "research", "tags": ["deep"]},
        task={"type": "code", "spec": {"text": {"$event": "output.text"}}},
    )
    driver.enqueue(type="research", tags=["deep", "slow"])
    driver.enqueue(type="research")
    driver.enqueue(type="test", tags=["deep"])
    done = [finish(driver, {"text": f"t{n}"}) for n in range(3)]

    fired = fire_one(driver)

    [event] = driver.records("select * from treadle.events where id = %s", fired.event_id)
    assert event["task_id"] in done
    assert fired.task_id is not None
    text = driver.task(event["task_id"])["output"]["text"]
    assert driver.task(fired.task_id)["spec"] == {"text": text}
    assert fire(driver) == []


@pytest.mark.requirement("F18")
def test_a_dead_lettered_task_of_a_class_is_reviewed(driver: Driver) -> None:
    define(
        driver,
        on="task.dead_lettered",
        filter={"queue": "default", "data": {"class": "auth_failure"}},
        task={"type": "review", "spec": {"task": {"$event": "task_id"}}},
    )
    for failure_class in ("error", "auth_failure"):
        driver.enqueue()
        driver.fail(driver.claim_one(), failure_class=failure_class, action="fail")

    fired = fire_one(driver)

    assert fired.task_id is not None
    dead = UUID(driver.task(fired.task_id)["spec"]["task"])
    assert driver.task(dead)["failure_class"] == "auth_failure"


@pytest.mark.requirement("F18")
def test_a_webhook_that_is_received_is_an_event_once(driver: Driver) -> None:
    define(
        driver,
        on="webhook.received",
        filter={"key": "stripe", "data": {"payload": {"type": "paid"}}},
        task={"type": "review", "spec": {"id": {"$event": "data.payload.id"}}},
    )
    call = "select treadle.receive_webhook(%s, %s, p_dedup_key => %s)"
    first = driver.value(call, "stripe", '{"type": "paid", "id": 1}', "evt_1")
    assert driver.value(call, "stripe", '{"type": "paid", "id": 1}', "evt_1") == first
    assert driver.value(call, "other", '{"type": "paid", "id": 2}', "evt_1") != first
    driver.value(call, "stripe", '{"type": "lost", "id": 3}', None)

    fired = fire_one(driver)

    assert fired.task_id is not None
    assert fired.event_id == first
    assert driver.task(fired.task_id)["spec"] == {"id": 1}


def test_what_happened_before_a_trigger_was_made_does_not_count(driver: Driver) -> None:
    define(driver, "first", on="other")
    emit(driver)
    define(driver)
    emit(driver, data={"n": 2})

    assert fire_one(driver).task_id == triggers.made(driver)[0]
    assert driver.task(triggers.made(driver)[0])["spec"] == {"of": {"n": 2}}


def test_a_paused_trigger_fires_only_on_what_happens_after_it_was_resumed(driver: Driver) -> None:
    define(driver)
    define(driver, "beside")
    driver.rows("select treadle.pause_trigger('t', 'a storm', 'me')")
    assert trigger(driver)["paused_reason"] == "a storm"
    emit(driver)
    driver.rows("select treadle.resume_trigger('t')")
    emit(driver)

    assert len(fire(driver)) == 3
    assert (trigger(driver)["fired"], trigger(driver, "beside")["fired"]) == (1, 2)
    assert trigger(driver)["paused_reason"] is None


def test_a_removed_trigger_leaves_its_tasks(driver: Driver) -> None:
    define(driver)
    emit(driver)
    task = fire_one(driver).task_id
    assert task is not None
    driver.rows("select treadle.remove_trigger('t')")
    emit(driver)

    assert fire(driver) == []
    assert driver.state_of(task) == "ready"
    assert driver.value("select count(*) from treadle.trigger_fires") == 0


def test_a_definition_is_changed_in_place_and_a_repeat_changes_nothing(driver: Driver) -> None:
    first = define(driver, filter={"key": "a"}, max_depth=3, max_per_hour=7)
    before = trigger(driver)
    assert define(driver, filter={"key": "a"}, max_depth=3, max_per_hour=7) == first
    assert trigger(driver) == before

    assert define(driver, on=None, task={"type": "code"}) == first
    row = trigger(driver)
    assert row["template"] == {"task": {"type": "code"}}
    assert (row["filter"], row["max_depth"], row["max_per_hour"]) == ({"key": "a"}, 3, 7)
    assert triggers.kinds(driver) == ["trigger.defined", "trigger.defined"]


def test_records_are_kept_as_long_as_their_retention_and_their_event(
    driver: Driver,
) -> None:
    define(driver, task={"type": "code"})
    event = emit(driver)
    task = fire_one(driver).task_id
    driver.rows("update treadle.trigger_fires set fired_at = fired_at - interval '31 days'")
    emit(driver, "other")
    fire(driver)
    left = "select count(*) from treadle.trigger_fires"
    prune = "select treadle.prune_other()"

    driver.rows(prune)
    assert driver.value(left) == 1, "nobody said how long"
    driver.rows("select treadle.set_retention('runs', 86400)")
    driver.rows("delete from treadle.tasks where id = %s", task)
    driver.rows(prune)
    assert driver.value(left) == 1, "it could fire on its event again"
    driver.rows("delete from treadle.events where id = %s", event)
    driver.rows(prune)
    assert driver.value(left) == 0


def test_a_backlog_is_worked_off_in_one_call(driver: Driver) -> None:
    define(driver, filter={"data": {"n": 1}})
    for n in (1, 0, 0, 0, 0, 0, 1):
        emit(driver, data={"n": n})

    assert len(fire(driver, limit=2)) == 2
    assert fire(driver) == []


def test_a_task_may_wait_for_the_webhook_too(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one()
    driver.rows(
        "select treadle.open_wait(%s, %s, 'w', %s)",
        *(claim.id, claim.token, '{"event": "webhook.received", "key": "stripe"}'),
    )
    driver.rows("select treadle.receive_webhook('stripe', '{}')")

    assert driver.value("select status from treadle.waits") == "answered"
