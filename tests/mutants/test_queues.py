"""Each guard of the properties of queues, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

schedules = Killers("push.test_push_schedules")
properties = Killers("queues.test_queue_properties")
full = Killers("queues.test_full_queue_verdicts")
removal = Killers("queues.test_remove_queue")
unknown = Killers("queues.test_unknown_queues")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a full queue that is an error in the log": Mutant(
        "try_enqueue_batch",
        {"when sqlstate 'TR105' then": "when sqlstate 'TR999' then"},
        full.test_an_enqueue_beyond_the_limit_says_why_and_changes_nothing,
        psycopg.Error,
    ),
    "a full push queue that is an error in the log": Mutant(
        "try_submit_push",
        {"when sqlstate 'TR105' then": "when sqlstate 'TR999' then"},
        full.test_a_prompt_beyond_the_limit_says_why_and_changes_nothing,
        psycopg.Error,
    ),
    "an ended entry that is an error in the log": Mutant(
        "try_cancel_push",
        {"when sqlstate 'TR102' then": "when sqlstate 'TR999' then"},
        full.test_an_entry_that_has_ended_says_so,
        psycopg.Error,
    ),
    "a queue of a protocol like any other": Mutant(
        "define_queue",
        {"where queues.name = p_name and preset.name = p_name": "where false"},
        lambda driver: properties.test_a_queue_of_a_protocol_has_its_properties_however_it_is_made(
            driver, "work", properties.WORK
        ),
    ),
    "a property that is a setting": Mutant(
        "define_queue",
        {"if p_settings ?| c_fixed then": "if false then"},
        lambda driver: properties.test_no_caller_can_turn_a_queue_into_one_of_a_protocol(
            driver, "desk", {"assignment": "manual"}
        ),
    ),
    "a setting that is not kept": Mutant(
        "define_queue",
        {"    hold = v_new.hold,\n": ""},
        properties.test_a_queue_may_hold_its_new_tasks_until_they_are_released,
    ),
    "a queue deleted under a task": Mutant(
        "remove_queue",
        {"  lock table treadle.queues in access exclusive mode;\n": ""},
        lambda driver: removal.test_a_task_that_is_being_enqueued_keeps_its_queue(
            removal.queue_with_lanes(driver)
        ),
    ),
    "a queue deleted with its tasks": Mutant(
        "check_queue_unused",
        {"where exists (select from treadle.tasks where tasks.queue = p_name)": "where false"},
        lambda driver: removal.test_a_task_that_has_ended_keeps_its_queue(
            removal.queue_with_lanes(driver)
        ),
    ),
    "a worker of an unknown queue": Mutant(
        "declare_types",
        {"  from unnest(p_uses) as used (name)\n": "  from unnest('{}'::text[]) as used (name)\n"},
        unknown.test_an_unknown_queue_that_an_application_uses_is_refused,
    ),
    "no queue is similar": Mutant(
        "raise_unknown_name",
        {"when v_near is not null": "when false"},
        unknown.test_an_unknown_type_has_a_suggestion_too,
    ),
    "a queue that is not made yet": Mutant(
        "assignment_of",
        {"where preset.name = p_queue": "where false"},
        schedules.test_a_schedule_makes_the_queue_with_its_limit,
        (*FAILED, psycopg.DatabaseError),
    ),
    "no depth": Mutant(
        "fire_schedule",
        {"when treadle.assignment_of(v_queue) = 'dispatch' then": "when false then"},
        schedules.test_what_a_schedule_submits_comes_with_the_depth_of_the_queue,
    ),
    "a reason without its dispatcher": Mutant(
        "why",
        {"and treadle.assignment_of(v_task.queue) = 'manual' then": "and false then"},
        properties.test_the_engine_goes_by_the_property_and_not_by_the_name,
    ),
    "a lane that seems open": Mutant(
        "why_lane",
        {"if treadle.assignment_of(p_lane.queue) = 'manual' then": "if false then"},
        properties.test_the_engine_goes_by_the_property_and_not_by_the_name,
    ),
    "an agent of the harness for ever": Mutant(
        "register_agent",
        {"    assigned_only = excluded.assigned_only,\n": ""},
        properties.test_an_agent_of_the_harness_that_registers_as_a_worker_takes_what_workers_take,
        (*FAILED, ValueError),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
