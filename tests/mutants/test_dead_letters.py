"""The guards of dead-letter review can fail: each is broken once, and a test must notice."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

edits = Killers("dead_letters.test_review_edits")
filters = Killers("dead_letters.test_review_filters")
groups = Killers("dead_letters.test_review_groups")
resolutions = Killers("dead_letters.test_resolutions")
races = Killers("dead_letters.test_review_races")
reviews = Killers("dead_letters.test_reviews")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError, KeyError, psycopg.Error)

MUTANTS = {
    "letters read before the lock": Mutant(
        "resolve_dead_letters",
        {
            "  v_letters := treadle.find_letters(p_ids);\n": "",
            "  perform treadle.ensure_durable();\n": (
                "  perform treadle.ensure_durable();\n  v_letters := treadle.find_letters(p_ids);\n"
            ),
        },
        lambda driver: races.test_the_second_of_two_reviewers_gets_the_name_of_the_first(
            driver, "cancel"
        ),
        WRONG,
    ),
    "no lock at all": Mutant(
        "resolve_dead_letters",
        {
            "perform treadle.lock_tasks(v_tasks || treadle.dependencies_of(v_tasks));": "null;",
            "perform treadle.lock_downstream(v_tasks);": "null;",
        },
        lambda driver: races.test_the_second_of_two_reviewers_gets_the_name_of_the_first(
            driver, "retry"
        ),
        WRONG,
    ),
    "a letter that stands for a later one": Mutant(
        "find_letters",
        {
            "dead_letters.id = given.id or dead_letters.task_id = given.id": (
                "dead_letters.task_id in (given.id, (select each.task_id from treadle.dead_letters"
                " as each where each.id = given.id))"
            )
        },
        reviews.test_the_id_of_a_letter_means_that_letter_and_no_later_one,
        WRONG,
    ),
    "a decision that is not kept": Mutant(
        "resolve_task",
        {"  from letter;\n": "  from letter where false;\n"},
        reviews.test_every_way_to_decide_keeps_the_decision,
        WRONG,
    ),
    "decisions that can be rewritten": Mutant(
        "tg_dead_letter_decisions__append_only",
        {"  perform treadle.raise_error(": "  return null;\n  perform treadle.raise_error("},
        lambda driver: reviews.test_a_decision_cannot_be_changed_or_removed_even_by_a_superuser(
            driver, "delete from treadle.dead_letter_decisions"
        ),
    ),
    "an escalation with repeated events": Mutant(
        "escalate_letters",
        {"      and dead_letters.escalated_to is distinct from p_to\n": ""},
        reviews.test_an_escalated_letter_stays_open_and_can_be_decided,
    ),
    "a delay that is forgotten": Mutant(
        "resolve_task",
        {"case when p_delay_s > 0 then v_now": "case when false then v_now"},
        reviews.test_a_retry_may_wait_until_later,
    ),
    "a delay that takes a slot": Mutant(
        "restart_task",
        {" or v_new.run_at > p_now then 'pending'": " then 'pending'"},
        reviews.test_a_retry_may_wait_until_later,
    ),
    "dependents that are left behind": Mutant(
        "cancel_letters",
        {"having count(*) > 0": "having false"},
        reviews.test_cancelling_takes_dependents_along_and_the_dag_counts,
    ),
    "a decision without a check": Mutant(
        "check_decision",
        {"  where rules.good is not true\n": "  where false\n"},
        lambda driver: reviews.test_a_decision_that_makes_no_sense_is_refused_before_anything(
            driver, "retry", {"delay_s": float("nan")}, "a delay must"
        ),
        WRONG,
    ),
    "a dry run that does it": Mutant(
        "resolve_dead_letters_where",
        {"case when p_dry_run then '{}' else v_ids[:p_limit] end": "v_ids"},
        filters.test_a_dry_run_counts_by_group_and_changes_nothing,
    ),
    "a limit that is not kept": Mutant(
        "resolve_dead_letters_where",
        {"v_ids[:p_limit]": "v_ids"},
        filters.test_letters_beyond_the_limit_are_left_for_the_next_call,
        WRONG,
    ),
    "a filter of letters that is not applied": Mutant(
        "matching_letters",
        {"and (v_print is null or dead_letters.fingerprint = v_print)": ""},
        filters.test_a_group_is_decided_and_no_other_letter,
    ),
    "letters looked for in one step": Mutant(
        "matching_letters",
        {"coalesce(v_wanted <= 0, true)": "true"},
        filters.test_what_is_wanted_is_found_however_far_behind_the_rest_it_is,
    ),
    "a step that begins where the last one did": Mutant(
        "matching_letters",
        {"v_last := v_tasks[v_step];": ""},
        filters.test_what_is_wanted_is_found_however_far_behind_the_rest_it_is,
    ),
    "an empty filter": Mutant(
        "check_letter_filter",
        {
            "  if v_rest <> '{}' or v_rest = p_filter or v_rest is null then\n": (
                "  if v_rest <> '{}' then\n"
            )
        },
        lambda driver: filters.test_a_filter_that_is_empty_unknown_or_malformed_is_refused(
            driver, {}, "it is empty"
        ),
    ),
    "a place that is not there": Mutant(
        "edit_spec",
        {"v_kind not in ('object', 'array')": "false"},
        lambda driver: edits.test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(
            driver, {"set": {"url.x": 1}}, "the spec has no path url.x"
        ),
        WRONG,
    ),
    "an edit that another task's output undoes": Mutant(
        "restart_task",
        {"tasks.inputs - treadle.edited_arguments(p_changes)": "tasks.inputs"},
        edits.test_an_argument_that_is_edited_is_no_longer_taken_from_another_task,
    ),
    "attempts that grow with each retry": Mutant(
        "restart_task",
        {"p_task.max_attempts - p_task.earlier_attempts": "p_task.max_attempts"},
        lambda driver: resolutions.test_every_retry_gives_the_attempts_that_the_task_was_given(
            driver, "retry_task"
        ),
    ),
    "attempts of the type": Mutant(
        "restart_task",
        {"p_task.max_attempts - p_task.earlier_attempts": "null"},
        resolutions.test_a_cancelled_task_comes_back_with_its_own_attempts,
    ),
    "ids that make a group each": Mutant(
        "error_pattern",
        {"[a-z0-9_-]{12,}(?![a-z0-9_])', '<n>'": "[a-z0-9_-]{99,}(?![a-z0-9_])', '<n>'"},
        lambda driver: groups.test_variable_parts_of_an_error_do_not_split_a_group(driver, "ids"),
    ),
    "one group for all answers over HTTP": Mutant(
        "error_pattern",
        {"(?![1-5][0-9]{2}(?![a-z0-9]))[0-9]+": "[0-9]+"},
        groups.test_other_errors_are_other_groups,
    ),
    "one group for all codes of an exit": Mutant(
        "error_pattern",
        {"(?![0-9]{1,3}(?![a-z0-9]))[0-9]+": "[0-9]+"},
        groups.test_other_errors_are_other_groups,
    ),
    "a class that there is not": Mutant(
        "check_filter",
        {"<> all (treadle.failure_classes())": "= ''"},
        filters.test_an_unknown_class_is_rejected_and_the_known_ones_are_listed,
    ),
    "a resolution that there is not": Mutant(
        "check_decision",
        {"p_decision in ('retry', 'cancel', 'modify_and_retry', 'escalate'),": "true,"},
        filters.test_an_unknown_queue_and_a_limit_out_of_range_are_refused,
        WRONG,
    ),
    "a key that letters do not have": Mutant(
        "check_letter_filter",
        {"given.key <> all (c_keys)": "false"},
        filters.test_an_unknown_key_is_refused_with_all_that_letters_have,
    ),
    "a traceback by its first line": Mutant(
        "error_line",
        {"coalesce(max(lines.at) filter (where lines.is_frame), 0)": "0"},
        lambda driver: groups.test_variable_parts_of_an_error_do_not_split_a_group(
            driver, "tracebacks"
        ),
    ),
    "one group for all classes": Mutant(
        "error_fingerprint",
        {"coalesce(p_class, '')": "''"},
        groups.test_a_letter_keeps_its_group_and_what_it_is_about,
    ),
    "an event without the cost": Mutant(
        "record_attempts",
        {"ended.next = 'dead_lettered'\n          and": "false\n          and"},
        groups.test_the_event_of_a_dead_letter_has_class_reason_attempts_and_cost,
        WRONG,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
