"""The guards of validation, reports and models can fail: each is broken once, and noticed."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

terms = Killers("claims.test_attempt_terms")
reports = Killers("claims.test_decision_reports")
validation = Killers("claims.test_validation")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError, IndexError, psycopg.Error)
EVERYBODYS_FEEDBACK = {
    "(v_held.ids, v_held.tokens, v_held.feedback)": "(p_ids, p_tokens, p_feedback)",
    "and v_held.ids is not null": "",
}

MUTANTS = {
    "a validation without its fence": Mutant(
        "validate_tasks",
        {"and claim.token = tasks.claim_token": ""},
        validation.test_another_token_cannot_begin_a_validation,
    ),
    "a validation that does not count as a start": Mutant(
        "validate_tasks",
        {"started_at = coalesce(tasks.started_at, tasks.claimed_at),": ""},
        lambda driver: validation.test_a_claimed_task_becomes_validating_and_keeps_its_claim(
            driver, False
        ),
    ),
    "a start that undoes a validation": Mutant(
        "start_tasks",
        {"and tasks.started_at is null": ""},
        validation.test_starting_late_does_not_turn_a_validating_task_back,
    ),
    "a reaper that does not look at validations": Mutant(
        "lock_expired_claims",
        {"('claimed', 'running', 'validating')": "('claimed', 'running')"},
        validation.test_a_validating_task_without_heartbeats_is_reaped,
        WRONG,
    ),
    "an audit without events": Mutant(
        "validate_tasks",
        {"'validation_started', null)": "'started', null)"},
        validation.test_a_full_audit_shows_the_validation,
    ),
    "feedback that is lost": Mutant(
        "fail_tasks",
        {"where p_feedback is not null and": "where false and"},
        validation.test_feedback_goes_to_the_next_attempt_and_is_bounded,
        WRONG,
    ),
    "feedback of a claim that was superseded": Mutant(
        "fail_tasks",
        EVERYBODYS_FEEDBACK,
        validation.test_the_feedback_of_a_superseded_claim_is_not_kept,
    ),
    "feedback without bounds": Mutant(
        "save_feedback",
        {"where said.at <= 20": ""},
        validation.test_feedback_goes_to_the_next_attempt_and_is_bounded,
    ),
    "feedback of a repeat": Mutant(
        "fail_tasks",
        EVERYBODYS_FEEDBACK,
        validation.test_a_repeated_rejection_changes_nothing,
    ),
    "unknown settings": Mutant(
        "validator_problem",
        {"where v_other is not null": "where false"},
        lambda driver: validation.test_validators_that_could_not_be_called_are_refused(
            driver,
            [{"validator": "test_pass", "name": "x", "command": ["rm"]}],
            "has the unknown setting 'command'",
        ),
    ),
    "validators of the type that are forgotten": Mutant(
        "types_with_requirements",
        {") > 0": ") > 9"},
        validation.test_a_task_has_the_validators_of_its_type_unless_it_names_its_own,
    ),
    "a completion without its report": Mutant(
        "complete_tasks",
        {"and not held.bare": ""},
        reports.test_a_type_that_requires_a_report_is_not_completed_without_one,
        WRONG,
    ),
    "a missing report that is called stale": Mutant(
        "complete_tasks",
        {"where held.bare) as bare": "where false) as bare"},
        reports.test_in_a_batch_only_those_without_a_report_are_left,
    ),
    "a misspelt validator that is let through": Mutant(
        "validator_problem",
        {"when treadle.misspelt_validator(v_name) is not null": "when false"},
        lambda driver: validation.test_validators_that_could_not_be_called_are_refused(
            driver, [{"validator": "regexp", "pattern": "x"}], "did you mean regex?"
        ),
        WRONG,
    ),
    "letters that cannot be swapped": Mutant(
        "edit_distance",
        {"i > 1 and j > 1": "false"},
        lambda driver: validation.test_validators_that_could_not_be_called_are_refused(
            driver, [{"validator": "rgeex", "pattern": "x"}], "did you mean regex?"
        ),
        WRONG,
    ),
    "one completion that is let through": Mutant(
        "complete_task",
        {"if v_verdict = 'report_required'": "if false"},
        reports.test_a_type_that_requires_a_report_is_not_completed_without_one,
    ),
    "a task that cannot do without": Mutant(
        "attempt_requirements",
        {"coalesce(task_options.report, task_types.report)": "coalesce(task_types.report)"},
        reports.test_a_task_may_want_a_report_or_do_without,
    ),
    "a report of any shape": Mutant(
        "check_reports",
        {"if found then": "if false then"},
        lambda driver: reports.test_a_report_out_of_shape_is_refused(
            driver, {}, "summary must be a text"
        ),
    ),
    "a fallback that comes too early": Mutant(
        "attempt_models",
        {"p_attempt >= 3": "p_attempt >= 2"},
        terms.test_fallback_models_are_in_force_from_the_third_attempt_that_counts,
    ),
    "a fallback that comes too late": Mutant(
        "attempt_models",
        {"p_attempt >= 3": "p_attempt >= 4"},
        terms.test_fallback_models_are_in_force_from_the_third_attempt_that_counts,
    ),
    "no fallback that is taken for one": Mutant(
        "attempt_models",
        {
            "nullif(coalesce(p_fallback, p_type_fallback), '{}')": (
                "coalesce(p_fallback, p_type_fallback)"
            )
        },
        lambda driver: terms.test_without_fallback_models_the_models_stay(driver, []),
    ),
    "attempts without their model": Mutant(
        "end_attempts",
        {"then treadle.attempt_model(tasks)": "then null"},
        terms.test_fallback_models_are_in_force_from_the_third_attempt_that_counts,
    ),
    "notes of one that lost its claim": Mutant(
        "lock_claim",
        {"and tasks.claim_token = p_token": "", "if not found then": "if false then"},
        terms.test_notes_are_fenced_bounded_and_show_no_token,
        WRONG,
    ),
    "a pill that is not poison": Mutant(
        "decide_retry",
        {"p_action = 'fail' or poison_pill or": "p_action = 'fail' or"},
        terms.test_a_poison_pill_skips_its_remaining_retries_and_is_flagged,
    ),
    "a pill that is not flagged": Mutant(
        "record_attempts",
        {"ended.poison_pill, ended.cost_usd": "false, ended.cost_usd"},
        terms.test_a_poison_pill_skips_its_remaining_retries_and_is_flagged,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
