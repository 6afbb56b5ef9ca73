"""The checks of order can fail: each guard is broken once, and a test must notice."""

import pytest
from psycopg import errors

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

each = Killers("claims.test_claim_each")
order = Killers("claims.test_claim_order")
priorities = Killers("tasks.test_set_priority")
shares = Killers("claims.test_fair_shares")
critical = Killers("dags.test_critical_path")
deadlines = Killers("tasks.test_deadlines")

pytestmark = pytest.mark.mutant


def fair(driver: Driver) -> Driver:
    driver.rows("""select treadle.define_queue('default', '{"fair": true}')""")
    return driver


MUTANTS = {
    "lanes that are merged by rank alone": Mutant(
        "peek_lanes",
        {"every.rank - every.shift": "every.rank"},
        lambda driver: order.test_over_several_lanes_the_order_is_that_of_the_effective_priority(
            driver, 3
        ),
    ),
    "lanes of which only the first rows are read": Mutant(
        "peek_lanes",
        {"exit when v_lanes is null;": "exit;"},
        lambda driver: order.test_over_several_lanes_the_order_is_that_of_the_effective_priority(
            driver, 3
        ),
    ),
    "a claim that gives up when others were quicker": Mutant(
        "pick_over_lanes",
        {"exit when cardinality(v_found.rows) < v_want * v_turn or": "exit when true or"},
        lambda driver: order.test_tasks_that_others_have_locked_are_replaced_by_later_ones(
            driver, 1
        ),
    ),
    "a deadline that is added to the last one": Mutant(
        "rerank_rows",
        {"- treadle.deadline_rank_offset(due.deadline_at, due.placed)": ""},
        deadlines.test_a_task_is_reranked_at_exactly_eight_moments,
    ),
    "running tasks that are ranked anew": Mutant(
        "rerank_tasks",
        {"'retrying', 'blocked')": "'retrying', 'blocked', 'running')"},
        deadlines.test_waiting_tasks_are_reranked_too,
    ),
    "a bad row that stops the others": Mutant(
        "rerank_tasks",
        {"exception when others then\n    -- One": "exception when no_data_found then\n    -- One"},
        deadlines.test_a_bad_row_does_not_stop_the_others,
        errors.RaiseException,
    ),
    "a deadline that the retry forgets": Mutant(
        "assign_lane",
        {"- case v_step when -1 then 0": "- case when true then 0"},
        deadlines.test_a_retried_task_keeps_the_place_of_its_deadline,
    ),
    "a chain that is longer for the first alone": Mutant(
        "extend_critical_paths",
        {"raised.critical_path + 1": "raised.critical_path"},
        critical.test_a_task_that_is_added_makes_all_before_it_more_urgent,
    ),
    "a chain that waits for a locked task": Mutant(
        "extend_critical_paths",
        {"for no key update skip locked": "for no key update"},
        critical.test_a_task_that_somebody_holds_is_not_waited_for,
        errors.LockNotAvailable,
    ),
    "chains of a list in any order that are measured once": Mutant(
        "chain_lengths",
        {"exit when v_stable or v_sorted;": "exit;"},
        lambda driver: critical.test_the_critical_path_is_capped_at_thirty(driver, True),
    ),
    "a retry that forgets the chain": Mutant(
        "restart_task",
        {"    rank = v_new.rank,": "    rank = v_new.rank + tasks.critical_path * 1000000,"},
        critical.test_a_retried_task_keeps_it,
    ),
    "a priority that claims do not follow": Mutant(
        "prioritise_rows",
        {
            "rank = tasks.rank + (p_priority - waiting.priority) * 1000000::bigint": (
                "rank = tasks.rank"
            )
        },
        priorities.test_claims_follow_a_priority_that_was_raised_or_lowered,
    ),
    "a priority for what runs": Mutant(
        "prioritise_rows",
        {"tasks.status = any (treadle.waiting_states()) and ": ""},
        priorities.test_what_does_not_wait_is_left_alone_with_a_verdict,
    ),
    "a priority without a lock": Mutant(
        "set_priority",
        {"  perform treadle.lock_tasks(p_ids);\n": ""},
        priorities.test_a_task_that_is_claimed_in_the_meantime_keeps_its_rank,
    ),
    "turns without dice": Mutant(
        "fair_shares",
        {"project.share, project.dice": "project.share, project.at"},
        lambda driver: shares.test_a_worker_with_one_slot_serves_the_small_project_too(
            fair(driver)
        ),
    ),
    "turns by shares that are all alike": Mutant(
        "projects_of",
        {"coalesce(projects.share, 1)": "1"},
        lambda driver: shares.test_shares_of_1_and_3_are_kept_within_one_task(fair(driver), 100),
    ),
    "turns that ignore running tasks": Mutant(
        "projects_of",
        {"coalesce(busy.tasks, 0)": "0"},
        lambda driver: shares.test_running_tasks_count_against_the_limit(fair(driver)),
    ),
    "agents that are asked with gates in hand": Mutant(
        "claim_tasks_for_agents",
        {"exit when not (v_plain and treadle.claims_are_plain());": ""},
        lambda driver: each.test_an_agent_after_a_claim_that_may_hold_other_locks_is_skipped(
            driver, each.limited
        ),
    ),
    "agents that are asked after an admission": Mutant(
        "claim_tasks_for_agents",
        {"not (v_plain and treadle.claims_are_plain())": "not treadle.claims_are_plain()"},
        lambda driver: each.test_an_agent_after_a_claim_that_may_hold_other_locks_is_skipped(
            driver, each.waiting_for_a_slot
        ),
    ),
    "an agent that is waited for": Mutant(
        "claim_tasks_for_agents",
        {"or agents.id = any (v_held)": "or true"},
        each.test_an_agent_that_somebody_holds_is_not_waited_for,
        noticed=errors.LockNotAvailable,
    ),
    "turns that are not applied": Mutant(
        "pick_fair",
        {"or array_remove(v_shares, null) = '{}';": "or true;"},
        lambda driver: shares.test_the_unused_share_of_a_project_goes_to_the_others(fair(driver)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
