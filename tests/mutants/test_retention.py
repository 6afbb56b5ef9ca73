"""The guards of retention can fail: each is broken once, and a test must notice."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

ages = Killers("retention.test_retention")
archive = Killers("retention.test_retention_archive")
money = Killers("retention.test_retention_money")
races = Killers("retention.test_retention_races")
readers = Killers("retention.test_retention_readers")
ties = Killers("retention.test_retention_ties")

pytestmark = pytest.mark.mutant

PINNED = "pinned_tasks"
ERROR = (*FAILED, psycopg.Error, IndexError)

MUTANTS = {
    "a dependent that is not looked at": Mutant(
        PINNED,
        {"and tasks.status <> 'completed'\n    union": "and false\n    union"},
        lambda driver: ties.test_a_task_stays_for_one_that_depends_on_it_and_may_still_run(
            driver, "complete"
        ),
    ),
    "a dependent that could be retried": Mutant(
        PINNED,
        {"and tasks.status <> 'completed'\n    union": "and tasks.completed_at is null\n    union"},
        lambda driver: ties.test_a_task_stays_for_one_that_depends_on_it_and_may_still_run(
            driver, "cancel"
        ),
    ),
    "a parent before its children": Mutant(
        PINNED,
        {"children.parent_id = any (p_ids) and": "false and"},
        ties.test_a_child_stays_for_its_parent_and_a_parent_for_its_children,
    ),
    "a child of a parent that runs": Mutant(
        PINNED,
        {"and parents.status <> 'completed'": "and false"},
        ties.test_a_child_stays_for_its_parent_and_a_parent_for_its_children,
    ),
    "half a DAG": Mutant(
        PINNED,
        {"where rest.dag_id = any (v_dags) and": "where false and"},
        ties.test_a_dag_stays_while_one_of_its_tasks_is_not_old_enough,
        ERROR,
    ),
    "a DAG that has not ended": Mutant(
        PINNED,
        {
            "dags.ended_at is null": "false",
            "where rest.dag_id = any (v_dags) and": "where false and",
        },
        lambda driver: ties.test_a_dag_that_has_not_ended_keeps_its_tasks(driver, "failed"),
        ERROR,
    ),
    "a question that is open": Mutant(
        PINNED,
        {"and waits.status = 'open'": "and false"},
        ties.test_a_task_with_an_open_question_or_reserved_money_stays,
    ),
    "money that is reserved": Mutant(
        PINNED,
        {"where reservations.task_id = any (p_ids)": "where false"},
        ties.test_a_task_with_an_open_question_or_reserved_money_stays,
    ),
    "an input without an edge": Mutant(
        "needed_as_input",
        {"tasks.dag_id is null or": "false or"},
        lambda driver: ties.test_a_task_stays_for_one_whose_inputs_name_it(driver, ties.by_fork),
    ),
    "a file that another wants": Mutant(
        "needed_as_input",
        {"or tasks.inputs::text like '%artifact:%'": ""},
        lambda driver: ties.test_a_task_stays_for_one_whose_inputs_name_it(
            driver, ties.by_artifact_in_a_dag
        ),
    ),
    "kin that are far apart": Mutant(
        "related_tasks",
        {"where prunable_tasks.parent_id = any (v_last)": "where false"},
        ties.test_a_parent_that_could_be_retried_goes_with_its_children_from_anywhere,
    ),
    "the rest of a DAG": Mutant(
        "related_tasks",
        {"where prunable_tasks.dag_id = any (v_dags)": "where false"},
        ties.test_a_dag_goes_as_a_whole_with_its_row_and_budget,
    ),
    "a DAG that stays when its tasks go": Mutant(
        "prune_dags",
        {"delete from treadle.dags where dags.id = any (p_dags);": ""},
        ties.test_a_dag_goes_as_a_whole_with_its_row_and_budget,
    ),
    "a row that somebody holds": Mutant(
        "lock_prunable",
        {
            "where prunable_tasks.id = any (p_ids)\n    for update skip locked": (
                "where prunable_tasks.id = any (p_ids)"
            )
        },
        races.test_a_dag_of_which_somebody_holds_one_task_stays_whole,
        ERROR,
    ),
    "not judged again once it is held": Mutant(
        "prune_tasks",
        {"  v_all := treadle.without_pinned(v_all);\n": ""},
        races.test_a_dag_of_which_somebody_holds_one_task_stays_whole,
        ERROR,
    ),
    "a fork of a task that is being pruned": Mutant(
        "fork_task",
        {" for key share": ""},
        races.test_a_task_that_is_being_forked_stays_until_the_fork_has_its_steps,
        ERROR,
    ),
    "spend that is forgotten": Mutant(
        "aggregate_spend",
        {"from gone\n  group": "from gone where false\n  group"},
        money.test_daily_figures_and_budgets_do_not_change_when_tasks_go,
    ),
    "sums that a new budget does not see": Mutant(
        "ledger_total",
        {"from treadle.spend_hours\n": "from treadle.spend_hours where false\n"},
        lambda driver: money.test_a_later_budget_includes_the_cost_of_pruned_tasks(driver, None),
    ),
    "a reader that is passed by": Mutant(
        "slowest_reader",
        {"order by places.xid, places.id": "order by places.xid desc, places.id desc"},
        money.test_a_task_goes_with_its_events_once_every_reader_has_them,
    ),
    "deleted triggers that hold all events": Mutant(
        "slowest_reader",
        {"places.name <> 'triggers'\n    or": "true or"},
        lambda driver: readers.test_without_an_active_trigger_events_go_by_their_age(
            driver, "remove_trigger"
        ),
    ),
    "an event that is to be tried again": Mutant(
        "slowest_reader",
        {"where fires.verdict = 'waiting'": "where false"},
        readers.test_what_waits_for_a_full_queue_keeps_its_event_and_task,
        ERROR,
    ),
    "a task that a reader still looks at": Mutant(
        PINNED,
        {"\n      || treadle.unread_tasks(p_ids, v_dags)": ""},
        readers.test_a_trigger_that_reads_late_finds_the_task_of_its_event,
        ERROR,
    ),
    "a DAG that a reader still looks at": Mutant(
        "unread_tasks",
        {"where events.dag_id = any (p_dags) and": "where false and"},
        readers.test_a_trigger_that_reads_late_finds_the_dag_of_its_event,
        ERROR,
    ),
    "files of a fork": Mutant(
        PINNED,
        {" || treadle.needed_by_fork(p_ids)": ""},
        ties.test_a_task_with_files_stays_for_forks_that_may_still_run,
    ),
    "files of a fork of a fork": Mutant(
        "needed_by_fork",
        {"and task_options.forked_from is not null": "and false"},
        ties.test_a_task_with_files_stays_for_forks_of_its_forks,
    ),
    "an old event that a reader has not seen": Mutant(
        "prune_events",
        {"and (events.xid, events.id) <= (v_read.xid, v_read.id)": ""},
        money.test_events_go_by_their_own_age_once_every_reader_has_them,
    ),
    "an event that is not certain yet": Mutant(
        "prune_events",
        {"and events.xid < pg_snapshot_xmin(pg_current_snapshot())": ""},
        money.test_an_event_of_a_transaction_that_is_open_is_not_behind_anybody,
    ),
    "an event that a task may still take": Mutant(
        "prune_events",
        {"events.key is null or coalesce(events.at < p_open_since, false)": "true"},
        money.test_an_emitted_event_is_kept_for_tasks_that_were_made_before_it,
    ),
    "an agent with work": Mutant(
        "prune_agents",
        {"tasks.agent_id = agents.id and": "false and"},
        money.test_long_offline_agents_are_pruned_unless_they_have_tasks_or_budgets,
    ),
    "a key with a limit of its own": Mutant(
        "prune_keys",
        {"keys.max = 1": "true"},
        money.test_idle_keys_and_old_uses_of_gates_are_pruned,
    ),
    "documents that lose their empty values": Mutant(
        "archive_tasks",
        {"tasks.spec, tasks.output,": "jsonb_strip_nulls(tasks.spec), tasks.output,"},
        archive.test_an_empty_value_inside_any_document_is_kept,
    ),
    "an archive of dropped tasks": Mutant(
        "archive_tasks",
        {"queues.prune_mode = 'archive'": "true"},
        archive.test_a_queue_that_drops_keeps_nothing,
    ),
    "one bad row that stops all": Mutant(
        "prune_tasks",
        {"pruned := pruned + treadle.prune_rows(v_unit);": "null;"},
        ages.test_a_bad_row_is_reported_and_the_others_go,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
