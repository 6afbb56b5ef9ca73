"""Each guard of the options of tasks, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

options = Killers("tasks.test_task_options")
retention = Killers("retention.test_retention")
results = Killers("tasks.test_take_results")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "an option that an argument replaces": Mutant(
        "add_arguments",
        {"    if found then": "    if false then"},
        options.test_an_option_of_enqueue_task_is_not_given_as_an_argument_too,
    ),
    "a field that is set where it cannot be": Mutant(
        "check_options",
        {"v_rule is null or not v_rule -> 'uses' ? p_use": "false"},
        lambda driver: options.test_an_unknown_option_of_a_task_is_rejected(
            driver, {"set": {"a": 1}}
        ),
    ),
    "names that are no names": Mutant(
        "are_short_names",
        {"jsonb_typeof(names.name) <> 'string'\n        or ": ""},
        lambda driver: options.test_a_list_of_names_has_names_only(driver, [1]),
    ),
    "names of any length": Mutant(
        "are_short_names",
        {"not between 1 and 200": "is null"},
        lambda driver: options.test_a_list_of_names_has_names_only(driver, ["x" * 201]),
    ),
    "two names of a project": Mutant(
        "apply_aliases",
        {"('delay_s', 'run_at'),\n    ('project', 'project_id')": "('delay_s', 'run_at')"},
        options.test_a_project_is_named_once,
    ),
    "a key that is ignored": Mutant(
        "enqueue_batch",
        {"    v_keys := array[p_options ->> 'idempotency_key'];\n": ""},
        options.test_a_key_works_as_an_option,
    ),
    "one key for many": Mutant(
        "enqueue_batch",
        {" or cardinality(p_specs) <> 1": ""},
        options.test_a_key_in_the_options_is_for_a_single_task,
    ),
    "a queue that is ignored": Mutant(
        "enqueue_batch",
        {"if p_options ?| array['queue', 'type', 'spec'] then": "if false then"},
        lambda driver: options.test_a_field_with_its_own_argument_is_not_an_option(driver, "spec"),
    ),
    "a default that overwrites dedupe": Mutant(
        "enqueue_task",
        {"nullif(p_dedupe, false)": "p_dedupe"},
        options.test_dedupe_works_as_an_option,
        psycopg.Error,
    ),
    "options of a task that is another one": Mutant(
        "store_tasks",
        {"case when given.held <> given.id then null else given.id end": "given.id"},
        options.test_a_task_that_was_there_already_keeps_its_options,
    ),
    "options of the first kind for all": Mutant(
        "store_options",
        {"p_rest[coalesce(given.kind, 1)], jsonb": "p_rest[1], jsonb"},
        options.test_each_task_of_a_dag_has_its_own_options,
    ),
    "options without the mark": Mutant(
        "prepare_task",
        {"task.has_options := not rest is null;": "task.has_options := false;"},
        options.test_each_task_of_many_has_the_options_of_its_kind,
    ),
    "options that stay behind": Mutant(
        "prune_rows",
        {"  delete from treadle.task_options where task_options.task_id = any (p_ids);\n": ""},
        options.test_options_go_with_their_task,
    ),
    "old options under the new ones": Mutant(
        "restart_task",
        {
            "delete from treadle.task_options where task_options.task_id = p_task.id and "
            "p_task.has_options;": ""
        },
        options.test_options_that_a_retry_removes_leave_no_row,
        (*FAILED, psycopg.errors.UniqueViolation),
    ),
    "a retry that forgets": Mutant(
        "restart_task",
        {", treadle.options_of(p_task)": ""},
        options.test_a_retry_changes_what_is_asked_and_keeps_the_rest,
    ),
    "results that are not stored": Mutant(
        "complete_tasks",
        {"if v_done.options or p_reports is not null then": "if false then"},
        results.test_a_result_is_taken_once_with_its_spec_and_output,
        (*FAILED, ValueError),
    ),
    "a result that is pruned before it is taken": Mutant(
        "store_results",
        {"task_options.consumer, done.report\n": "null, done.report\n"},
        retention.test_a_result_that_its_consumer_has_not_taken_stays,
    ),
    "a limit of the type that a plain insert forgets": Mutant(
        "tg_tasks__prepare",
        {"v_rest.max_tokens := v_type.max_tokens;": ""},
        options.test_a_limit_of_the_type_is_kept_with_the_task,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
