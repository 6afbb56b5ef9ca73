"""Break a rule of `why` on purpose: a test has to notice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

stuck = Killers("engine.test_stuck")
agents = Killers("why.test_why_agents")
gates = Killers("why.test_why_gates")
turn = Killers("why.test_why_turn")
waiting = Killers("why.test_why_waiting")
truth = Killers("why.test_why_truth")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "no look at pauses": Mutant(
        "why_paused",
        {"where stopped.paused_at is not null": "where false"},
        gates.test_why_reports_a_paused_queue_with_actor_and_reason,
    ),
    "silent agents live": Mutant(
        "is_live",
        {"\n  and p_agent.heartbeat_at": "\n  or p_agent.heartbeat_at"},
        lambda driver: agents.test_an_agent_that_does_not_claim_is_none(driver, "silent"),
    ),
    "agents without a limit": Mutant(
        "eligible_agents",
        {"agents.max_concurrent_tasks > hand.held": "agents.max_concurrent_tasks >= 0"},
        agents.test_every_agent_is_at_its_limit,
    ),
    "a promoter that is always in time": Mutant(
        "why_time",
        {"p_task.status = 'retrying'\n    or": "false\n    or"},
        lambda driver: waiting.test_a_task_that_is_due_waits_for_the_promoter(driver, "retry"),
    ),
    "met dependencies count": Mutant(
        "why_dependencies",
        {" and dependencies.met_at is null": ""},
        waiting.test_a_task_names_the_dependencies_that_are_not_done,
    ),
    "claimable before tasks that may be admitted first": Mutant(
        "is_next_task",
        {"treadle.may_admit() or": "false or"},
        turn.test_tasks_that_will_be_admitted_first_are_not_counted_in_the_position,
    ),
    "claimable before a probe": Mutant(
        "is_next_task",
        {"v_probe uuid := treadle.next_probe(p_agent, p_now)": "v_probe uuid"},
        gates.test_a_task_is_not_claimable_while_a_probe_goes_first,
    ),
    "claimable while projects take turns": Mutant(
        "is_next_task",
        {"treadle.is_fair_claim(v_open.lanes, v_open.projects, v_open.fair)": "false"},
        turn.test_in_a_fair_queue_a_position_is_that_among_its_project,
    ),
    "claimable without money": Mutant(
        "is_next_task",
        {"money.reason = 'budget'": "false"},
        gates.test_why_reports_an_exhausted_budget_with_amounts,
    ),
    "claimable at a gate that is full": Mutant(
        "is_next_task",
        {"if v_keys is null then": "if true then"},
        lambda driver: gates.test_why_reports_a_used_up_rate_with_the_next_free_time(driver, False),
    ),
    "an order that ignores the budget of the agent": Mutant(
        "first_ready_task",
        {"<= coalesce(p_budget, 'Infinity')": "<= 'Infinity'"},
        turn.test_tasks_that_the_agent_cannot_afford_are_not_counted_in_the_position,
    ),
    "an order by rank alone": Mutant(
        "first_ready_task",
        {"order by head.rank - lane.shift, head.id": "order by head.rank, head.id"},
        lambda driver: claim_in_eight_situations(driver),
    ),
    "positions of one lane": Mutant(
        "count_ready",
        {"tasks.lane_id = lane.id": "tasks.lane_id = lane.id and lane.id = p_task.lane_id"},
        turn.test_why_reports_the_position_of_other_tasks,
    ),
    "closed lanes first": Mutant(
        "claim_order",
        {"order by heads.closed_reason is not null, ": "order by "},
        turn.test_open_lanes_come_first_and_closed_ones_show_the_cause,
    ),
    "a fair queue in plain order": Mutant(
        "claim_order",
        {"heads.turn, ": ""},
        turn.test_in_the_order_of_a_fair_queue_projects_take_turns,
    ),
    "gates that open soon are stuck": Mutant(
        "lane_problem",
        {"interval '5 minutes'": "interval '0'"},
        lambda driver: stuck.test_tasks_behind_a_gate_that_is_closed_for_long_are_stuck(
            driver, 60, 0
        ),
    ),
}


def fresh_start(driver: Driver) -> Driver:
    """The same database without what the last situation left there."""
    driver.rows(
        """
        truncate treadle.tasks, treadle.agents, treadle.budgets, treadle.gates, treadle.gate_uses,
          treadle.breakers, treadle.projects, treadle.admissions, treadle.concurrency_keys,
          treadle.reservations, treadle.dead_letters, treadle.attempts
        """
    )
    driver.rows("delete from treadle.lanes")
    driver.rows("delete from treadle.queues where name <> 'default'")
    driver.rows("update treadle.queues set paused_at = null, fair = false")
    driver.rows("update treadle.task_types set paused_at = null")
    return driver


def claim_in_eight_situations(driver: Driver) -> None:
    for seed in range(8):
        truth.test_why_returns_claimable_exactly_for_the_task_that_the_next_claim_takes(
            fresh_start(driver), seed
        )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
