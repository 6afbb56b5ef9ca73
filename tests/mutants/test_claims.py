"""The checks can fail: each guard is broken once, and a test of this folder must notice.

A mutant is a change of one function's text, applied to a database of its own, and the test that
has to fail there. Those tests pass on the real text; they run beside this file.
"""

from collections.abc import Callable

import pytest
from psycopg import errors

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

privileges = Killers("access.test_privileges")
concurrency = Killers("claims.test_claim_concurrency")
eligibility = Killers("claims.test_claim_eligibility")
fencing = Killers("claims.test_claim_fencing")
order = Killers("claims.test_claim_order")
repeat = Killers("claims.test_claim_repeat")
durability = Killers("claims.test_durability")
heartbeats = Killers("claims.test_heartbeats")
late = Killers("claims.test_late_answers")
leases = Killers("claims.test_leases")
racing = Killers("claims.test_racing_answers")
reaper = Killers("claims.test_reaper")
repeated = Killers("claims.test_repeated_answers")
retry_rules = Killers("claims.test_retry_rules")
waking = Killers("claims.test_waking")
wrong_clock = Killers("claims.test_wrong_clock")
dag_cancel = Killers("dags.test_dag_cancel")
cancel = Killers("tasks.test_cancel")
figures = Killers("tasks.test_figures")
idempotency = Killers("tasks.test_idempotency")
promoter = Killers("tasks.test_promoter")
states = Killers("tasks.test_states")
results = Killers("tasks.test_take_results")

pytestmark = pytest.mark.mutant

TOKEN = "and claim.token = tasks.claim_token"
NO_TOKEN = "and tasks.claim_token is not null"


MUTANTS = {
    "a late result whose run counts twice": Mutant(
        "run_time",
        {"(select max(attempts.ended_at)": "(select min(attempts.claimed_at)"},
        lambda driver: figures.test_a_result_that_comes_late_counts_its_run_once(
            driver, figures.create_task(driver)
        ),
    ),
    "a claim that expired and counts as run": Mutant(
        "end_attempts",
        {"when ended.reason = 'handler'": "when true"},
        lambda driver: figures.test_a_claim_that_was_never_started_has_not_run(
            driver, figures.create_task(driver)
        ),
    ),
    "a suspended attempt without its model": Mutant(
        "suspend_claim",
        {"then treadle.attempt_model(p_task)": "then null"},
        lambda driver: figures.test_waits_and_runs_add_up_over_a_question_a_retry_and_a_completion(
            driver, figures.create_task(driver)
        ),
    ),
    "a first step that keeps the time to start": Mutant(
        "renewed_lease",
        {"p_task.started_at is not null": "true"},
        lambda driver: leases.test_every_sign_of_life_leaves_a_lease_of_three_heartbeats(
            driver, "step"
        ),
    ),
    "a lease that a heartbeat shortens": Mutant(
        "renewed_lease",
        {"p_task.started_at is not null": "false"},
        leases.test_a_heartbeat_does_not_shorten_a_longer_lease,
    ),
    "complete without the token": Mutant(
        "complete_tasks",
        {"claim.token = tasks.claim_token\n": "tasks.claim_token is not null\n"},
        fencing.test_a_superseded_claim_cannot_complete_the_task,
    ),
    "complete after the end": Mutant(
        "complete_tasks",
        {
            "(claim.token = tasks.last_token and tasks.completed_at is null)": "claim.token ="
            " tasks.last_token"
        },
        late.test_a_late_result_is_refused_after_the_cancellation,
    ),
    "no late completion": Mutant(
        "complete_tasks",
        {"or (claim.token = tasks.last_token and tasks.completed_at is null)": ""},
        late.test_a_late_result_is_taken_while_the_task_is_ready_again,
    ),
    "complete by the place it saw": Mutant(
        "complete_tasks",
        {
            "tasks.id, claim.output": "tasks.id, tasks.ctid, claim.output",
            "where tasks.id = held.id": "where tasks.ctid = held.ctid",
        },
        lambda driver: racing.test_a_call_that_had_to_wait_for_another_sees_what_it_did(
            driver, "heartbeat", "complete"
        ),
    ),
    "fail without the token": Mutant(
        "fail_tasks",
        {TOKEN: NO_TOKEN},
        fencing.test_a_superseded_claim_cannot_fail_the_task,
    ),
    "heartbeat without the token": Mutant(
        "heartbeat_tasks",
        {TOKEN: NO_TOKEN},
        fencing.test_a_superseded_claim_cannot_renew_the_lease_or_report_progress,
    ),
    "release without the token": Mutant(
        "release_tasks",
        {TOKEN: NO_TOKEN},
        fencing.test_a_superseded_claim_cannot_give_the_task_back,
    ),
    "start without the token": Mutant(
        "start_tasks",
        {TOKEN: NO_TOKEN},
        fencing.test_a_superseded_claim_cannot_start_the_task,
    ),
    "release that counts the attempt": Mutant(
        "release_tasks",
        {"attempt = tasks.attempt - 1": "attempt = tasks.attempt"},
        repeated.test_a_repeated_release_returns_already_and_restores_one_attempt,
    ),
    "already for a result that was not stored": Mutant(
        "end_verdicts",
        {"and (tasks.status = 'completed') = coalesce(p_verdict = 'completed', false)": ""},
        repeated.test_a_completion_that_returns_already_means_that_the_result_is_stored,
    ),
    "the old token again": Mutant(
        "write_claims",
        {"and tasks.last_token is distinct from p_token": ""},
        lambda driver: repeat.test_a_task_never_gets_the_token_of_its_last_claim_again(
            driver, "released"
        ),
    ),
    "claim without skip locked": Mutant(
        "pick_from_lane",
        {"for update skip locked": "for update"},
        concurrency.test_a_task_that_another_session_is_claiming_is_skipped_not_waited_for,
        errors.LockNotAvailable,
    ),
    "claim in any order": Mutant(
        "pick_from_lane",
        {"order by tasks.rank, tasks.id": "order by tasks.id"},
        order.test_a_lower_priority_number_is_claimed_first,
    ),
    "limit counted without a lock": Mutant(
        "claiming_agent",
        {" for no key update;": ";"},
        concurrency.test_a_claim_waits_for_another_of_the_same_agent_before_it_counts,
    ),
    "claim without the capabilities": Mutant(
        "lane_matches_agent",
        {"p_lane.capabilities <@ p_agent.capabilities": "true"},
        eligibility.test_an_agent_needs_every_capability_that_a_task_asks_for,
    ),
    "claim from a paused queue": Mutant(
        "open_lanes",
        {"and queues.paused_at is null": ""},
        eligibility.test_pausing_one_queue_leaves_the_others_alone,
    ),
    "time that stands still in a transaction": Mutant(
        "clock",
        {"clock_timestamp()": "now()"},
        leases.test_the_clock_advances_inside_a_transaction,
    ),
    "a heartbeat that extends a claim that has not started": Mutant(
        "heartbeat_tasks",
        {"when tasks.started_at is null then tasks.lease_until": "when false then null"},
        heartbeats.test_a_heartbeat_of_a_claim_that_has_not_started_does_not_extend_it,
    ),
    "reaper that waits and does not look again": Mutant(
        "lock_expired_claims",
        {
            "where treadle.claim_expiry_reason(tasks, p_now) is not null": "",
            "for update of tasks skip locked": "for update of tasks",
        },
        reaper.test_a_claim_that_is_being_renewed_at_this_moment_is_left_alone,
    ),
    "reaper stopped by a bad row": Mutant(
        "reap_claims",
        {"for v_at in 1..cardinality(v_stale.rows) loop": "for v_at in 1..0 loop"},
        reaper.test_a_row_that_cannot_be_moved_is_reported_and_does_not_stop_the_others,
    ),
    "promoter that is too early": Mutant(
        "promote_tasks",
        {"and tasks.retry_at <= v_now ": ""},
        promoter.test_a_retry_is_made_ready_when_its_delay_is_over_and_not_before,
    ),
    "one attempt too many": Mutant(
        "decide_retry",
        {"p_task.attempt >= p_task.max_attempts": "p_task.attempt > p_task.max_attempts"},
        retry_rules.test_after_its_last_attempt_a_task_is_dead,
    ),
    "a rate limit that burns an attempt": Mutant(
        "decide_retry",
        {"refunded := p_class = 'rate_limit'": "refunded := false"},
        retry_rules.test_a_rate_limit_burns_no_attempt,
    ),
    "cancel of an ended task": Mutant(
        "cancel_tasks",
        {" and tasks.completed_at is null": ""},
        dag_cancel.test_a_dependent_that_was_cancelled_before_is_counted_once,
        errors.CheckViolation,
    ),
    "cancel that keeps the token": Mutant(
        "cancel_rows",
        {"    claim_token = null,\n": ""},
        cancel.test_the_heartbeat_of_a_cancelled_task_reports_the_cancellation,
        errors.CheckViolation,
    ),
    "results handed out twice": Mutant(
        "take_results",
        {" and wanted.consumed_token is null": ""},
        results.test_a_result_is_taken_once_with_its_spec_and_output,
    ),
    "content without the type": Mutant(
        "content_key",
        {"coalesce(p_type, '')": "''"},
        idempotency.test_with_dedupe_the_key_is_made_from_the_content,
    ),
    "delays of a wrong clock that are left": Mutant(
        "promote_tasks",
        {"restart_delays(p_limit,": "restart_delays(0,"},
        lambda driver: wrong_clock.test_a_delay_made_a_day_ahead_is_over_after_its_own_length(
            driver, "a retry by its policy"
        ),
    ),
    "delays that shrink with each look": Mutant(
        "restart_delay_rows",
        {"    delayed_at = p_now\n": "    delayed_at = tasks.delayed_at\n"},
        wrong_clock.test_a_delay_is_not_shortened_by_looking_at_it_again,
    ),
    "retries that forget since when they wait": Mutant(
        "apply_decisions",
        {"then p_now else tasks.delayed_at end": "then null else tasks.delayed_at end"},
        lambda driver: wrong_clock.test_a_delay_made_a_day_ahead_is_over_after_its_own_length(
            driver, "a retry that its handler asked for"
        ),
    ),
    "a delay that is taken for a wish": Mutant(
        "apply_aliases",
        {"    v_task.delayed_at := p_now;\n": ""},
        lambda driver: wrong_clock.test_a_delay_made_a_day_ahead_is_over_after_its_own_length(
            driver, "a task with a delay"
        ),
    ),
    "commits that are not flushed": Mutant(
        "ensure_durable",
        {"in ('off', 'local')": "= 'local'"},
        lambda driver: (
            durability.test_a_client_with_less_than_synchronous_commit_still_commits_for_good(
                driver, "complete_tasks", "off"
            )
        ),
    ),
    "commits that no standby has": Mutant(
        "ensure_durable",
        {"in ('off', 'local')": "= 'off'"},
        lambda driver: (
            durability.test_a_client_with_less_than_synchronous_commit_still_commits_for_good(
                driver, "complete_tasks", "local"
            )
        ),
    ),
    "a wake-up for nothing": Mutant(
        "tg_tasks__notify",
        {"where added.status = 'ready'": ""},
        lambda driver: waking.test_a_task_that_cannot_be_claimed_yet_wakes_no_worker(
            driver, waking.Listener(driver, "task_ready.default"), {"hold": True}
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)


@pytest.mark.parametrize(
    ("change", "killer"),
    [
        (
            "grant execute on function treadle.claim_tasks to public",
            privileges.test_a_login_without_a_role_may_call_no_function,
        ),
        (
            "grant select on treadle.tasks to treadle_worker",
            privileges.test_no_role_has_a_right_on_a_table,
        ),
        (
            "alter table treadle.tasks drop constraint tasks_claim_check",
            lambda driver: states.test_a_running_task_cannot_lose_a_part_of_its_claim(
                driver, "claim_token"
            ),
        ),
    ],
    ids=["a function for all", "a table for workers", "no check of the claim"],
)
def test_a_right_or_a_check_that_was_changed_is_noticed(
    fresh: Driver, change: str, killer: Callable[[Driver], None]
) -> None:
    fresh.rows(change)

    with pytest.raises(FAILED):
        killer(fresh)
