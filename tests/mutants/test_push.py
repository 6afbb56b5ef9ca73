"""Each guard of queue `push`, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

pushes = Killers("push.test_push")
cancels = Killers("push.test_push_cancel")
schedules = Killers("push.test_push_schedules")

pytestmark = pytest.mark.mutant

LOCK = """  insert into treadle.locks (name) values ('depth:push')
  on conflict (name) do update set touched = locks.touched + 1;
"""
OPEN = "  perform treadle.ensure_push_queue(p_max_depth, p_max_attempts);\n"

MUTANTS = {
    "a place in the line before its turn": Mutant(
        "submit_push",
        {LOCK: ""},
        pushes.test_a_submitter_takes_its_place_when_it_is_its_turn,
    ),
    "the moment from before the wait": Mutant(
        "submit_push",
        {
            "  v_task.created_at := treadle.clock();\n": "",
            "  v_task.rank := treadle.push_rank(v_task, v_task.created_at);\n": "",
        },
        pushes.test_a_submitter_takes_its_place_when_it_is_its_turn,
    ),
    "the lock before the lane": Mutant(
        "submit_push",
        {LOCK: "", OPEN: OPEN + LOCK},
        pushes.test_the_first_two_submitters_do_not_block_each_other,
        (*FAILED, psycopg.errors.DeadlockDetected),
    ),
    "a full queue in other words": Mutant(
        "submit_push",
        {"if v_depth >= v_limit then": "if false then"},
        pushes.test_at_capacity_nothing_is_stored,
    ),
    "a full queue without its reason": Mutant(
        "submit_push",
        {"'reason', 'queue_full',": ""},
        pushes.test_at_capacity_nothing_is_stored,
    ),
    "a limit that the server sets back": Mutant(
        "check_depth",
        {"when v_queue.assignment = 'dispatch' then": "when false then"},
        schedules.test_the_error_of_a_manual_run_into_a_full_queue_names_the_setting,
    ),
    "any size": Mutant(
        "ensure_push_queue",
        {"'max_depth', coalesce(p_max_depth, v_queue.max_depth, 50)": "'max_depth', 1000000"},
        schedules.test_a_schedule_makes_the_queue_with_its_limit,
    ),
    "limits for ever": Mutant(
        "ensure_push_queue",
        {"elsif v_queue.max_depth <> p_max_depth or": "elsif false and"},
        pushes.test_other_limits_hold_from_the_next_submission_on,
        (*FAILED, psycopg.DatabaseError),
    ),
    "priority before patience": Mutant(
        "ensure_push_queue",
        {"'ageing_rate', 1000,": ""},
        pushes.test_no_entry_overtakes_one_that_has_waited_for_some_seconds,
    ),
    "back to the old place": Mutant(
        "push_rank",
        {"lanes.urgency, p_at)": "lanes.urgency, p_task.created_at)"},
        pushes.test_a_task_can_be_put_at_the_back,
    ),
    "a prompt of nothing": Mutant(
        "push_spec",
        {"when 'prompt' then": "when 'nothing' then"},
        lambda driver: pushes.test_a_request_that_no_agent_understands_is_refused(
            driver, {"prompt": " \n"}, "prompt"
        ),
    ),
    "variables that are no texts": Mutant(
        "push_spec",
        {"when 'env' then": "when 'nothing' then"},
        lambda driver: pushes.test_a_request_that_no_agent_understands_is_refused(
            driver, {"env": {"A": 1}}, "env"
        ),
    ),
    "unknown fields": Mutant(
        "push_spec",
        {"given.key in (": "given.key = 'priority' or given.key in ("},
        pushes.test_the_spec_has_the_fields_of_the_request_and_no_others,
    ),
    "tasks of other queues": Mutant(
        "push_id",
        {" and tasks.queue = 'push'": ""},
        cancels.test_a_task_of_another_queue_has_no_queue_id,
    ),
    "an end that is cancelled": Mutant(
        "cancel_push",
        {"if v_verdict <> 'ended' then": "if true then"},
        cancels.test_an_ended_entry_does_not_change,
    ),
    "a schedule that makes no queue": Mutant(
        "push_template",
        {"  perform treadle.ensure_push_queue();\n": ""},
        schedules.test_a_schedule_makes_the_queue_with_its_limit,
        (*FAILED, psycopg.DatabaseError),
    ),
    "a schedule with any fields": Mutant(
        "push_template",
        {"if v_task ->> 'type' = 'prompt' then": "if false then"},
        schedules.test_a_schedule_whose_prompt_no_agent_understands_is_refused,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
