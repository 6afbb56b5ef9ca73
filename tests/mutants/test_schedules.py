"""The guards of schedules can fail: each is broken once, and a test must notice."""

from datetime import datetime

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

rules = Killers("engine.test_broken_rules")
pauses = Killers("queues.test_pauses")
acts = Killers("schedules.test_schedule_acts")
policies = Killers("schedules.test_schedule_policies")
schedules = Killers("schedules.test_schedules")

pytestmark = pytest.mark.mutant


def after_a_pause(driver: Driver) -> None:
    none: list[tuple[datetime, str]] = []
    policies.test_after_a_pause_the_catch_up_policy_decides_about_missed_times(driver, "skip", none)


MUTANTS = {
    "a time is dealt with again": Mutant(
        "fire_schedule",
        {"or v_schedule.next_at is distinct from p_due[1]": ""},
        schedules.test_a_second_proposal_of_the_same_time_does_nothing,
    ),
    "a second pause that forgets why": Mutant(
        "pause_schedule",
        {"coalesce(p_reason, v_schedule.paused_reason)": "p_reason"},
        lambda driver: pauses.test_a_second_pause_keeps_the_reason(driver, "schedule"),
    ),
    "a schedule of nothing": Mutant(
        "define_schedule",
        {
            "coalesce(nullif(p_settings - c_settings[3:], '{}'), '{\"task\": null}')": (
                "p_settings - c_settings[3:]"
            )
        },
        rules.test_a_schedule_without_a_task_or_dag_is_rejected,
    ),
    "no check for an earlier run": Mutant(
        "was_run",
        {"schedule_runs.nominal_at = p_nominal": "false"},
        schedules.test_a_time_that_was_dealt_with_is_never_dealt_with_again,
        noticed=Exception,
    ),
    "an old revision counts": Mutant(
        "fire_schedule",
        {"or v_schedule.revision <> p_revision": ""},
        schedules.test_times_calculated_before_a_change_are_ignored,
    ),
    "a time fires before it comes": Mutant(
        "fire_schedule",
        {"where due.at > v_now": "where false"},
        schedules.test_a_time_that_has_not_come_does_nothing,
    ),
    "a paused schedule fires": Mutant(
        "fire_schedule",
        {"or v_schedule.paused_at is not null": ""},
        after_a_pause,
    ),
    "schedulers wait for each other": Mutant(
        "fire_schedule",
        {"for no key update skip locked": "for no key update"},
        schedules.test_a_schedule_that_another_scheduler_holds_is_left_alone,
        noticed=Exception,
    ),
    "a full queue is an error like any other": Mutant(
        "make_run",
        {"when sqlstate 'TR105'": "when sqlstate 'TR106'"},
        schedules.test_a_full_queue_is_recorded_and_the_schedule_continues,
    ),
    "an error stops the schedule": Mutant(
        "make_run",
        {"when others then": "when sqlstate 'TR999' then"},
        schedules.test_work_that_cannot_be_enqueued_is_a_status_and_leaves_nothing,
        noticed=Exception,
    ),
    "a lock that is held long is the schedule's fault": Mutant(
        "make_run",
        {"or lock_not_available or operator_intervention": "or operator_intervention"},
        schedules.test_a_temporary_error_is_raised_and_the_time_stays_due,
    ),
    "jitter is another each time": Mutant(
        "run_start_at",
        {"hashtextextended(p_schedule.id::text,": "hashtextextended(gen_random_uuid()::text,"},
        schedules.test_jitter_moves_the_start_by_the_same_amount_each_time_and_not_the_nominal_time,
    ),
    "a change forgets the next time": Mutant(
        "define_schedule",
        {"if (v_new.cron, v_new.timezone) is distinct from": "if true or null is distinct from"},
        schedules.test_a_change_that_is_not_of_the_calendar_leaves_the_next_time,
    ),
    "a new line makes up for the past": Mutant(
        "define_schedule",
        {"v_new.from_at := treadle.clock();": "v_new.from_at := v_old.created_at;"},
        policies.test_times_before_a_new_cron_line_are_not_made_up_for,
    ),
    "a template is not tried": Mutant(
        "dry_run_schedule",
        {"when sqlstate 'TR999' or sqlstate 'TR105'": "when others"},
        lambda driver: acts.test_a_schedule_that_could_not_work_is_refused_and_changes_nothing(
            driver, "s", {"task": {"type": "cod"}}, "there is no task type"
        ),
    ),
    "skip creates missed times": Mutant(
        "run_plan",
        {"when 'skip' then given.at < grace.since": "when 'skip' then false"},
        policies.test_catch_up_skip_creates_nothing_for_missed_times,
    ),
    "one makes each": Mutant(
        "run_plan",
        {"and p_due[1] < grace.since": "and false"},
        policies.test_one_makes_one_task_for_all_that_was_missed,
    ),
    "all makes one": Mutant(
        "run_plan",
        {"when 'all' then false": "when 'all' then given.at < p_due[cardinality(p_due)]"},
        policies.test_all_makes_each_time_in_order,
    ),
    "a resumed schedule makes up for a pause": Mutant(
        "resume_schedule",
        {"v_schedule.catch_up = 'skip'": "v_schedule.catch_up = 'never'"},
        after_a_pause,
    ),
    "nothing is live": Mutant(
        "live_runs",
        {"limit 100": "limit 0"},
        lambda driver: policies.test_overlap_skip_waits_for_the_end_of_the_last(driver, "task"),
    ),
    "only the last is live": Mutant(
        "live_runs",
        {"limit 100": "limit 1"},
        policies.test_what_a_person_started_counts_for_the_overlap_too,
    ),
    "a bad line is looked at again and again": Mutant(
        "mark_schedule_invalid",
        {"set next_at = 'infinity', last_status": "set next_at = null, last_status"},
        acts.test_a_schedule_with_an_invalid_line_stops_with_a_reason_and_the_others_continue,
    ),
    "run now counts as a time": Mutant(
        "run_schedule",
        {"last_error = null,": "last_error = null, next_at = null,"},
        acts.test_a_manual_run_is_recorded_and_is_not_a_nominal_time,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)


def test_two_fences_hold_when_one_is_broken(fresh: Driver) -> None:
    """Without the check for earlier runs, the key of the runs still prevents a second run."""
    mutant = MUTANTS["no check for an earlier run"]
    fresh.conn.execute(mutant.text().encode())
    with pytest.raises(Exception, match="was already run for"):
        mutant.killer(fresh)

    assert fresh.value("select count(*) from treadle.tasks") == 1
