"""The guards of artifacts can fail: each is broken once, and a test must notice."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

inputs = Killers("artifacts.test_artifact_inputs")
storing = Killers("artifacts.test_artifact_storing")
sweeping = Killers("artifacts.test_artifact_sweeping")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a file of a lost claim": Mutant(
        "store_artifact",
        {"perform treadle.lock_claim(p_id, p_token);": ""},
        storing.test_a_superseded_claim_can_neither_reserve_nor_store,
    ),
    "a file that is stored twice": Mutant(
        "store_artifact",
        {"elsif v_row.bytes <> p_bytes or v_row.sha256 <> p_sha256 then": "elsif false then"},
        storing.test_a_repeat_after_a_lost_answer_changes_nothing,
    ),
    "a reservation of another": Mutant(
        "reserve_artifact",
        {
            "and artifacts.task_id = v_task.id": "",
            "and artifacts.claim_token = p_token": "",
        },
        storing.test_an_id_of_another_task_is_refused,
    ),
    "a file that is seen too early": Mutant(
        "find_artifact",
        {"in ('stored', 'linked')": "<> 'doomed'"},
        storing.test_a_reserved_file_is_not_visible,
    ),
    "a file that is seen too long": Mutant(
        "find_artifact",
        {"in ('stored', 'linked')": "<> 'storing'"},
        sweeping.test_the_files_of_deleted_tasks_are_doomed_and_links_go_with_them,
    ),
    "a list of files that are on their way": Mutant(
        "list_artifacts",
        {"in ('stored', 'linked')": "<> 'doomed'"},
        storing.test_a_reserved_file_is_not_visible,
    ),
    "the oldest of a name": Mutant(
        "find_artifact",
        {"created_at) desc": "created_at)"},
        storing.test_of_one_name_the_newest_counts_and_the_others_stay,
    ),
    "a file that is dropped after it was stored": Mutant(
        "cancel_artifact",
        {"and artifacts.status = 'storing'": ""},
        storing.test_what_was_not_stored_can_be_given_up_and_what_was_cannot,
    ),
    "a sweep that asks for no claim": Mutant(
        "artifacts_to_delete",
        {"and tasks.claim_token = artifacts.claim_token": "and false"},
        sweeping.test_a_file_that_a_live_claim_is_writing_is_never_marked_for_deletion,
    ),
    "a sweep that asks for the task only": Mutant(
        "artifacts_to_delete",
        {"and tasks.claim_token = artifacts.claim_token": ""},
        lambda driver: sweeping.test_a_file_that_was_not_stored_when_its_claim_ended_is_doomed(
            driver, "reaped"
        ),
    ),
    "a sweep without a grace": Mutant(
        "artifacts_to_delete",
        {"treadle.clock() - make_interval(secs => p_grace_s)": "treadle.clock()"},
        lambda driver: sweeping.test_a_file_that_was_not_stored_when_its_claim_ended_is_doomed(
            driver, "completed"
        ),
    ),
    "a dry run that acts": Mutant(
        "artifacts_to_delete",
        {"if not p_dry_run then": "if true then"},
        lambda driver: sweeping.test_a_file_that_was_not_stored_when_its_claim_ended_is_doomed(
            driver, "completed"
        ),
    ),
    "a row that is forgotten before its file": Mutant(
        "remove_deleted_artifacts",
        {"and artifacts.status = 'doomed'": ""},
        sweeping.test_a_reservation_is_not_forgotten_before_it_is_doomed,
    ),
    "files that outlive their task": Mutant(
        "tg_tasks__orphan_artifacts",
        {"in ('storing', 'stored')": "in ('storing')"},
        sweeping.test_the_files_of_deleted_tasks_are_doomed_and_links_go_with_them,
    ),
    "all files are unknown": Mutant(
        "unknown_artifacts",
        {"artifacts.id = given.id": "false"},
        sweeping.test_unknown_artifact_ids_are_returned,
    ),
    "an input of a task that runs": Mutant(
        "resolve_reference",
        {"v_status = 'completed' and v_parts[3]": "v_parts[3]"},
        inputs.test_a_missing_file_is_reported,
    ),
    "an input without a dependency": Mutant(
        "node_refs",
        {"'^task:([^:]+):'": "'^task:([^:]+):output'"},
        inputs.test_a_task_of_a_dag_waits_for_the_task_whose_file_it_wants,
        psycopg.DatabaseError,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
