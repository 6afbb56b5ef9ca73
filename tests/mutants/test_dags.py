"""The checks of DAGs can fail: each guard is broken once, and a test must notice."""

from collections.abc import Callable

import pytest
from psycopg import errors

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

alone = Killers("tasks.test_dependencies")
alone_races = Killers("tasks.test_dependency_races")
cycles = Killers("dags.test_cycles")
isolation = Killers("dags.test_dag_isolation")
keys = Killers("dags.test_node_keys")
locks = Killers("dags.test_dag_locks")
races = Killers("dags.test_dag_races")

pytestmark = pytest.mark.mutant

Killer = Callable[[Driver], None]
LOCKED = "v_ids := treadle.lock_downstream(p_ids);"
# Where a check of the table stops the mutant before the test sees its effect.
STOPPED = (*FAILED, errors.CheckViolation)


def old_snapshot(name: str, level: str = "repeatable read") -> Killer:
    return lambda driver: isolation.test_with_an_old_snapshot_a_call_fails_completely_or_succeeds(
        driver, name, level
    )


def start_a_few_times(driver: Driver) -> None:
    for _ in range(4):  # a race is lost soon, not always at once
        races.test_a_task_is_added_while_its_dag_starts(driver, True)


MUTANTS = {
    "an edge that is met twice": Mutant(
        "satisfy_dependencies",
        {"      and dependencies.met_at is null\n": ""},
        lambda driver: races.test_one_parent_gives_up_while_the_other_is_completed(
            driver, "continue"
        ),
        STOPPED,
    ),
    "edges of one call that count as one": Mutant(
        "satisfy_dependencies",
        {
            "tasks.blocked_count - counted.edges": "tasks.blocked_count - 1",
            "treadle.is_free(tasks, counted.edges, p_now)": "treadle.is_free(tasks, 1, p_now)",
        },
        races.test_parents_that_are_completed_in_one_call_are_counted_each,
    ),
    "completion that locks no dependents": Mutant(
        "complete_tasks",
        {"perform treadle.lock_with_dependents(p_ids);": ""},
        locks.test_a_completion_locks_its_dependents_in_order,
    ),
    "circles that are looked for without a lock": Mutant(
        "add_edges",
        {
            "insert into treadle.locks (name) values ('edges')\n"
            "    on conflict (name) do update set touched = locks.touched + 1;": ""
        },
        lambda driver: cycles.test_the_second_edge_waits_for_the_first_and_is_refused(
            driver, "two pairs"
        ),
    ),
    "circles that are not looked for": Mutant(
        "add_edges",
        {"tasks.blocked_count > 0": "tasks.blocked_count > 1"},
        lambda driver: cycles.test_a_dependency_that_closes_a_circle_is_refused(driver, False),
    ),
    "circles in a list that are not looked for": Mutant(
        "check_order",
        {"if v_taken < cardinality(p_names)": "if false"},
        cycles.test_a_long_circle_is_found_and_named_by_its_beginning,
    ),
    "dependencies that are locked and not written": Mutant(
        "lock_dependencies",
        {"where tasks.id = any (p_ids) and": "where false and"},
        old_snapshot("new dependent, completion"),
    ),
    "dead letters that are not written": Mutant(
        "lock_dependencies",
        {"tasks.status not in ('completed', 'cancelled')": "tasks.completed_at is null"},
        lambda driver: isolation.test_a_dead_letter_that_is_cancelled_takes_new_dependents_along(
            driver, "repeatable read"
        ),
    ),
    "dependencies that are not locked": Mutant(
        "add_dependency",
        {"perform treadle.lock_dependencies(array[p_task, p_depends_on]);": ""},
        races.test_a_dependency_is_added_while_it_is_completed,
        STOPPED,
    ),
    "dependencies of new tasks that are not locked": Mutant(
        "try_insert_nodes",
        {"perform treadle.lock_dependencies(array_agg(distinct others.id))": "perform 1"},
        old_snapshot("new task elsewhere, completion"),
    ),
    "subtasks that are waited for without a lock": Mutant(
        "suspend_task",
        {"perform treadle.lock_dependencies(p_children || p_id);": ""},
        old_snapshot("waits, completion"),
    ),
    "a retry that does not lock its dependencies": Mutant(
        "retry_task",
        {
            "perform treadle.lock_tasks(p_id || treadle.dependencies_of(array[p_id]));": "null;",
        },
        lambda driver: isolation.test_a_task_is_not_revived_to_wait_for_one_that_was_cancelled(
            driver, "repeatable read"
        ),
    ),
    "DAGs that are counted without a lock": Mutant(
        "update_dag_counters",
        {"    for no key update\n": ""},
        races.test_of_the_last_two_tasks_one_ends_the_dag,
        STOPPED,
        tries=20,
    ),
    "DAGs that are locked one by one": Mutant(
        "lock_downstream",
        {
            "perform treadle.lock_dags_of(treadle.lock_affected_tasks(p_ids));": "perform"
            " treadle.lock_affected_tasks(p_ids);"
        },
        lambda driver: locks.test_two_dags_are_counted_in_one_order(driver, 0),
    ),
    "subtasks that are not counted": Mutant(
        "spawn_tasks",
        {"perform treadle.count_new_dag_tasks(v_task.dag_id, jsonb_array_length(p_tasks));": ""},
        lambda driver: races.test_a_dag_does_not_end_before_subtasks_that_are_being_started(
            driver, "complete"
        ),
        STOPPED,
    ),
    "subtasks whose dependencies are locked later": Mutant(
        "spawn_tasks",
        {
            "perform treadle.lock_references(\n    p_tasks, v_task.dag_id, v_task.project_id,"
            " array[p_id]\n  );": ""
        },
        locks.test_two_tasks_start_subtasks_that_depend_on_each_other,
    ),
    "tasks that are named again and locked later": Mutant(
        "add_tasks",
        {"perform treadle.lock_references(p_tasks, p_dag, v_home.project_id, '{}');": ""},
        locks.test_tasks_are_added_again_while_one_of_them_is_completed,
    ),
    "lanes before tasks": Mutant(
        "try_insert_nodes",
        {
            "perform treadle.check_order(v_names": "perform treadle.prepare_nodes(p_tasks,"
            " p_base);\n  perform treadle.check_order(v_names"
        },
        locks.test_lanes_are_made_after_tasks_are_locked,
    ),
    "a cancellation that ignores waiting dependents": Mutant(
        "affected_tasks",
        {" || treadle.dependents_of(p_ids || v_cancelled)": ""},
        locks.test_an_optional_dependent_further_down_is_locked_in_order_too,
    ),
    "a cancellation that reads before it waits": Mutant(
        "cancel_tasks",
        {
            "any (v_ids)": "any (array(select unnest(treadle.lock_downstream(p_ids))))",
            LOCKED: "",
        },
        locks.test_a_task_cancelled_through_two_paths_is_counted_once,
        STOPPED,
    ),
    "a completion that looks once for dependents": Mutant(
        "lock_with_dependents",
        {"raise exception using errcode = 'TR999', message = 'a dependent was added';": "return;"},
        lambda driver: (
            locks.test_a_dependent_that_came_while_the_end_of_a_task_waited_is_locked_in_order(
                driver, "complete"
            )
        ),
        tries=20,
    ),
    "a failure that looks once for dependents": Mutant(
        "lock_failure_cascade",
        {"raise exception using errcode = 'TR999', message = 'a dependent was added';": "return;"},
        lambda driver: (
            locks.test_a_dependent_that_came_while_the_end_of_a_task_waited_is_locked_in_order(
                driver, "fail"
            )
        ),
        tries=20,
    ),
    "a cancellation that looks once for dependents": Mutant(
        "lock_affected_tasks",
        {"raise exception using errcode = 'TR999', message = 'a task was added';": "return v_now;"},
        lambda driver: (
            locks.test_a_dependent_that_came_while_the_end_of_a_task_waited_is_locked_in_order(
                driver, "cancel"
            )
        ),
        tries=20,
    ),
    "DAGs that are counted in another order": Mutant(
        "update_dag_counters",
        {"    order by dags.id\n": "    order by dags.id desc\n"},
        lambda driver: locks.test_two_dags_are_counted_in_one_order(driver, 1),
    ),
    "a cancellation that locks unaffected tasks": Mutant(
        "affected_tasks",
        {"        and not dependencies.optional\n": ""},
        locks.test_the_successors_of_an_optional_dependent_do_not_change,
    ),
    "a start that looks once": Mutant(
        "lock_whole_dag",
        {"raise exception using errcode = c_again, message = 'a task was added';": "return v_dag;"},
        start_a_few_times,
        tries=20,
    ),
    "a start that does not count": Mutant(
        "start_dag",
        {"perform treadle.update_dag_counters(array[p_dag],": "perform concat("},
        races.test_a_dag_whose_tasks_were_all_cancelled_ends_when_it_starts,
    ),
    "an ended DAG that grows": Mutant(
        "count_new_dag_tasks",
        {"if v_dag.ended_at is not null then": "if false then"},
        old_snapshot("end, new tasks"),
        STOPPED,
    ),
    "optional dependents that fall": Mutant(
        "downstream_of",
        {"and not dependencies.optional": ""},
        races.test_a_task_is_completed_or_cancelled_and_its_dependents_follow,
    ),
    "a dead letter that ends its DAG": Mutant(
        "update_dag_counters",
        {
            "when counted.now_completed + counted.now_cancelled": "when counted.now_dead"
            " + counted.now_completed + counted.now_cancelled"
        },
        lambda driver: races.test_a_parent_that_begins_to_wait_misses_no_end_of_its_subtasks(
            driver, True
        ),
    ),
    "a suspension that is not counted": Mutant(
        "suspend_claim",
        {"tasks.blocked_count + p_unmet": "tasks.blocked_count"},
        old_snapshot("waits, completion"),
        STOPPED,
    ),
    "the holder of a key that is looked up once": Mutant(
        "try_insert_nodes",
        {"treadle.key_holders(p_tasks, p_base.project_id) is distinct from v_held": "false"},
        keys.test_a_holder_that_is_cancelled_at_the_same_moment_is_replaced,
        errors.DatabaseError,
    ),
    "a key that another session takes first": Mutant(
        "try_insert_nodes",
        {"where not stored.created": "where false"},
        lambda driver: keys.test_of_two_sessions_with_one_key_the_second_depends_on_the_first(
            driver, "a task", "commit"
        ),
    ),
    "a task of another DAG that is counted": Mutant(
        "insert_nodes",
        {"and false = any (created)": "and false"},
        keys.test_a_second_dag_depends_on_the_task_that_exists,
    ),
    "a key of any project": Mutant(
        "key_holders",
        {"else p_project": "else null"},
        keys.test_a_key_belongs_to_a_project,
        (*FAILED, errors.DatabaseError),
    ),
    "a key that is given twice": Mutant(
        "check_nodes",
        {"nodes.task ->> 'idempotency_key' is not null\n": "false\n"},
        keys.test_a_dag_without_a_new_task_is_refused,
    ),
    "a repeat whose dependencies must exist": Mutant(
        "try_insert_nodes",
        {"else nodes.task - array['after', 'inputs']": "else nodes.task"},
        alone.test_a_repeat_returns_the_task_and_adds_no_dependency,
        errors.DatabaseError,
    ),
    "dependencies that are locked list by list": Mutant(
        "enqueue_tasks",
        {"perform treadle.lock_dependencies(": "perform cardinality("},
        alone_races.test_the_dependencies_of_a_list_are_locked_in_one_order,
    ),
    "dependencies of any shape": Mutant(
        "node_refs",
        {"      else true\n    end": "      else false\n    end"},
        lambda driver: alone.test_what_cannot_be_waited_for_is_refused(
            driver, {"after": [1]}, "1 is not a dependency"
        ),
    ),
    "files that do not exist": Mutant(
        "node_refs",
        {"null, null)).id is null": "null, null)).id = null"},
        lambda driver: alone.test_what_cannot_be_waited_for_is_refused(
            driver, {"inputs": {"x": f"artifact:{alone.UNKNOWN}"}}, "which does not exist"
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
