"""Each view is readable by the roles that need it."""

import pytest

from tests.drivers.budgets import pay
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.retention import age, complete_full_task, keep, prune
from tests.drivers.roles import A_DAG, A_SCHEDULE, A_TRIGGER, ROLES, become
from tests.drivers.steps import claimed, record_artifact, save_step
from tests.drivers.work import in_progress

VIEWS = (
    *("prunable_tasks", "archived_tasks", "archived_dags", "retention_status"),
    *("dispatch_log", "queue_health", "agent_load", "dead_letter_details", "stuck"),
    *("task_details", "task_fields", "task_access", "transitions", "dag_overview", "dag_tasks"),
    *("gate_status", "breaker_status", "type_status"),
    *("budget_status", "daily_spend", "concurrency_status", "project_load"),
    "artifact_details",
    "protocol_queues",
    *("schedule_status", "schedule_log"),
    *("trigger_status", "trigger_log", "event_log"),
    *("dead_letter_groups", "dead_letter_attempts", "dead_letter_decision_log"),
    *("webhook_status", "webhook_delivery_log"),
    "token_status",
    "push_queue",
    *("harness_tasks", "harness_agent_status"),
    *("push_agent_status", "push_dispatch_log"),
    *("work_items", "work_dispatches", "work_changes", "work_transitions", "project_list"),
)
# Shown with the tests of waits and of steps.
ELSEWHERE = {"wait_details", "task_steps"}
# Read by the pruner alone.
NOBODYS = {"task_parts"}


def test_no_view_is_forgotten_here(driver: Driver) -> None:
    found = driver.rows("select viewname from pg_views where schemaname = 'treadle'")

    assert {name for (name,) in found} == {*VIEWS, *ELSEWHERE, *NOBODYS}


def furnish(driver: Driver) -> None:
    """Put a row into every view."""
    driver.rows(f"select treadle.create_dag('{A_DAG}')")
    driver.complete(driver.claim_one("a"))
    keep(driver, keep_completed_s=0)
    assert prune(driver) == 1
    driver.enqueue(priority=1)
    driver.complete(driver.claim_one("a"))
    driver.enqueue(capabilities=["x"], concurrency_key="k", concurrency_limit=1)
    driver.enqueue(max_attempts=1, priority=1)
    driver.fail(driver.claim_one("a"))
    escalate = "select treadle.resolve_dead_letters(array[id], 'escalate', p_to => 'ops')"
    driver.rows(f"{escalate} from treadle.dead_letters")
    driver.rows(f"select treadle.create_dag('{A_DAG}')")
    driver.rows("select treadle.define_gate('llm')")
    driver.rows("select treadle.enqueue_harness_task('http://a', '{}')")
    driver.rows("select treadle.allow_nudges('http://a')")
    driver.rows("""select treadle.define_webhook('w', '{"url": "https://example.org/"}')""")
    driver.rows("select treadle.record_delivery('w', 1, 200, null, 1)")
    driver.rows("""select treadle.create_token('t', '{"scopes": ["read"]}')""")
    driver.rows("""select treadle.submit_push('{"prompt": "x"}', 'cli')""")
    driver.rows("select treadle.define_push_agent('pushed', 'https://example.org')")
    driver.rows("select treadle.dispatch_task('pushed', gen_random_uuid(), gen_random_uuid())")
    driver.rows("""select treadle.submit_push('{"prompt": "y"}', 'cli')""")
    driver.rows("select treadle.define_project('site')")
    in_progress(driver)
    driver.rows(f"select treadle.{A_SCHEDULE}")
    driver.rows("select treadle.run_schedule('s')")
    driver.rows(f"select treadle.{A_TRIGGER}")
    driver.rows("select treadle.emit_event('x')")
    driver.rows("select treadle.fire_triggers()")
    driver.rows("select treadle.set_budget('all', null, 1)")
    claim = driver.claim_one("a")
    pay(driver, claim, "0.5")
    driver.rows("select treadle.record_artifact(%s, %s, 'a', 'b')", claim.id, claim.token)


def test_an_observer_reads_every_view(driver: Driver) -> None:
    furnish(driver)
    session = become(driver, "treadle_observer")

    empty = [view for view in VIEWS if session.rows(f"select * from treadle.{view}") == []]

    assert empty == []


@pytest.mark.parametrize("role", ROLES)
def test_no_role_reads_what_only_the_pruner_needs(driver: Driver, role: str) -> None:
    session = become(driver, role)

    for view in NOBODYS:
        with refused("42501", "permission denied for view"):
            session.rows(f"select * from treadle.{view}")


def test_no_column_of_a_view_is_named_like_a_token_of_a_claim(driver: Driver) -> None:
    found = driver.rows(
        """
        select attrelid::regclass::text, attname
        from pg_attribute
        inner join pg_class on attrelid = pg_class.oid
        where
          relnamespace = 'treadle'::regnamespace and relkind in ('v', 'm') and attnum > 0
          and attname ~ 'token' and attname !~ '(^|_)(max|input|output)_tokens$'
        """
    )

    assert found == []


@pytest.mark.requirement("B16")
def test_no_view_shows_a_token_anywhere(driver: Driver) -> None:
    """Neither of a running claim nor of a past one, whose late answers may be accepted."""
    keep(driver)
    complete_full_task(driver)
    age(driver)
    assert prune(driver) == 1
    claim = claimed(driver)
    driver.rows("select treadle.add_attempt_note(%s, %s, 'note')", claim.id, claim.token)
    save_step(driver, claim, "step", 1)
    record_artifact(driver, claim)
    furnish(driver)
    tokens = secrets_of(driver)
    assert str(claim.token) in tokens

    views = [*VIEWS, *ELSEWHERE, *NOBODYS]
    shown = {
        view
        for view in views
        for (row,) in driver.rows(f"select shown::text from treadle.{view} as shown")
        if any(token in row for token in tokens)
    }

    assert shown == set()


def secrets_of(driver: Driver) -> set[str]:
    """Every value of a column for a token, in any table."""
    columns = driver.rows(
        """
        select attrelid::regclass::text, attname
        from pg_attribute
        inner join pg_class on attrelid = pg_class.oid
        where
          relnamespace = 'treadle'::regnamespace and relkind = 'r' and attnum > 0
          and attname ~ '(^|_)token$' and atttypid = 'uuid'::regtype
        """
    )
    return {
        value
        for table, column in columns
        for (value,) in driver.rows(f"select distinct {column}::text from {table}")
        if value is not None
    }


@pytest.mark.parametrize("role", ["treadle_producer", "treadle_worker"])
def test_producers_and_workers_do_not_read_the_tasks_of_others(driver: Driver, role: str) -> None:
    session = become(driver, role)

    for view in VIEWS:
        if view not in ("task_fields", "transitions", "work_transitions"):
            with refused("42501", "permission denied for view"):
                session.rows(f"select * from treadle.{view}")
