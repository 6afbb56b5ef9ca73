"""Each guard of work items, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

projects = Killers("projects.test_projects")
work = Killers("work.test_work")
releases = Killers("work.test_work_releases")
rules = Killers("work.test_work_rules")
verdicts = Killers("work.test_work_verdicts")

pytestmark = pytest.mark.mutant

NEEDS = ("queued", "dispatched", "assigned_agent")

BUSY = ({"status": "in_progress"}, "TR108", "already has a work item in progress")

MUTANTS = {
    "a busy agent that is an error in the log": Mutant(
        "try_update_work_item",
        {"or sqlstate 'TR108'": ""},
        lambda driver: verdicts.test_a_refusal_is_a_row_with_a_problem_and_changes_nothing(
            driver, *BUSY
        ),
        psycopg.Error,
    ),
    "an item that is read before its change": Mutant(
        "try_update_work_item",
        {
            "  perform treadle.update_work_item(p_id, p_changes, p_actor, p_acting_agent, "
            "p_stale_s);\n": "",
            "  where work_items.id = p_id;\n": "  where work_items.id = p_id;\n  perform "
            "treadle.update_work_item(p_id, p_changes, p_actor, p_acting_agent, p_stale_s);\n",
        },
        verdicts.test_of_two_dispatches_at_once_each_is_shown_its_own_agent,
    ),
    "claims that take work items": Mutant(
        "open_lanes",
        {"and queues.assignment <> 'manual'": ""},
        work.test_no_claim_takes_a_work_item,
    ),
    "probes that take work items": Mutant(
        "probe_lanes",
        {"and queues.assignment <> 'manual'": ""},
        work.test_no_claim_takes_a_work_item,
    ),
    "work that was not dispatched": Mutant(
        "prepare_task",
        {"v_queue.hold or coalesce": "coalesce"},
        releases.test_a_task_that_is_enqueued_as_work_waits_for_its_dispatcher,
    ),
    "any state after any other": Mutant(
        "check_work_change",
        {"if not found and v_to <> v_from then": "if false then"},
        rules.test_a_change_that_is_not_listed_is_refused,
    ),
    "nothing that is needed": Mutant(
        "check_work_change",
        {"if v_needs is not null and": "if false and"},
        lambda driver: rules.test_a_change_without_its_required_fields_is_rejected(driver, *NEEDS),
    ),
    "any outcome": Mutant(
        "check_work_change",
        {"elsif p_changes ->> 'outcome' <>": "elsif false and p_changes ->> 'outcome' <>"},
        rules.test_an_outcome_is_that_of_the_end_and_comes_with_none_other,
    ),
    "taken twice": Mutant(
        "check_work_change",
        {"elsif v_from = 'in_progress' and": "elsif false and"},
        rules.test_starting_an_item_again_is_rejected_but_updating_it_is_not,
    ),
    "given away while in progress": Mutant(
        "check_work_change",
        {"and v_from not in ('queued', 'dispatched', 'blocked')": "and false"},
        rules.test_an_item_in_progress_stays_with_its_agent,
    ),
    "any agent's item": Mutant(
        "check_work_change",
        {"if p_acting_agent is not null and": "if false and"},
        work.test_only_its_agent_changes_an_item_where_that_is_asked_for,
    ),
    "old news": Mutant(
        "check_work_change",
        {"(p_changes ->> 'unless_updated_since')::timestamptz <": "null::timestamptz <"},
        rules.test_an_item_that_was_changed_meanwhile_is_left_alone,
    ),
    "an item that is not locked": Mutant(
        "lock_work_item",
        {"\n  for no key update;": ";"},
        rules.test_a_concurrent_start_of_the_same_item_waits_and_is_rejected,
    ),
    "tasks of other queues": Mutant(
        "lock_work_item",
        {"tasks.id = p_id and tasks.queue = 'work'": "tasks.id = p_id"},
        work.test_a_task_of_another_queue_is_not_a_work_item,
    ),
    "a time that is not renewed": Mutant(
        "write_work",
        {"then p_now + make_interval(secs => p_stale_s)": "then tasks.lease_until"},
        rules.test_each_change_restarts_the_stale_timeout_of_an_item,
    ),
    "silence that is a failure": Mutant(
        "lock_expired_claims",
        {"when 'block' then 'work_stale'": "when 'never' then null"},
        work.test_an_item_without_updates_is_blocked_and_not_failed,
    ),
    "a log that can be changed": Mutant(
        "tg_work_log__append_only",
        {"perform treadle.raise_error(": "perform format('%s%s%s%s',"},
        work.test_the_log_cannot_be_changed_or_removed,
    ),
    "cancelled and not written down": Mutant(
        "cancel_rows",
        {"where queues.keep_changes": "where false"},
        work.test_changes_by_operators_are_in_the_log_of_an_item_too,
    ),
    "revived and not written down": Mutant(
        "resolve_task",
        {"and queues.keep_changes": "and false"},
        work.test_changes_by_operators_are_in_the_log_of_an_item_too,
    ),
    "since that is about the beginning": Mutant(
        "list_work_items",
        {"case when v_ended then tasks.completed_at else tasks.created_at end": "tasks.created_at"},
        rules.test_since_means_the_end_where_that_is_asked_for,
    ),
    "work that is released": Mutant(
        "release_held_tasks",
        {"where queues.assignment = 'manual'": "where false"},
        releases.test_a_work_item_is_not_released_like_other_tasks,
    ),
    "work that is dispatched by its DAG": Mutant(
        "start_dag",
        {"where queues.hold": "where false"},
        releases.test_a_work_item_of_a_dag_that_is_started_is_still_to_be_dispatched,
    ),
    "notes without an end": Mutant(
        "block_expired_claims",
        {"when v_over > 0 then": "when false then"},
        lambda driver: releases.test_the_note_of_the_reaper_finds_room_below_long_ones(driver, "x"),
    ),
    "a project with another's name": Mutant(
        "update_project",
        {"when unique_violation then": "when division_by_zero then"},
        projects.test_a_project_may_be_called_like_another_later,
        noticed=psycopg.errors.UniqueViolation,
    ),
    "a project that is looked at before it is locked": Mutant(
        "update_project",
        {"perform from treadle.projects where projects.id = p_id for no key update;": ""},
        projects.test_concurrent_changes_of_a_project_do_not_undo_each_other,
    ),
    "work that waits and is taken": Mutant(
        "start_work_item",
        {"if p_task.status = 'pending' then": "if false then"},
        rules.test_work_that_waits_for_others_cannot_be_taken_and_frees_others_when_done,
    ),
    "a timeout that ends work": Mutant(
        "start_work_item",
        {"timeout_s = null,": ""},
        work.test_a_type_with_a_timeout_does_not_end_an_item,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
