"""Each guard of the harness, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

secrets = Killers("access.test_looks_secret")
actions = Killers("harness.test_harness_actions")
foreign_tasks = Killers("harness.test_harness_foreign_tasks")
tasks = Killers("harness.test_harness_tasks")
redelivery = Killers("harness.test_harness_redelivery")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError)
STOPPED = (*WRONG, psycopg.Error)

MUTANTS = {
    "a callback that is repeated for ever": Mutant(
        "interrupt_actions",
        {"stopped.redeliver and stopped.tries < p_max_tries": "stopped.redeliver"},
        redelivery.test_it_is_left_to_an_operator_after_its_last_try,
    ),
    "any callback that is repeated": Mutant(
        "interrupt_actions",
        {"stopped.redeliver and stopped.tries": "stopped.tries"},
        redelivery.test_by_default_it_is_interrupted,
    ),
    "a late result after an operator has decided": Mutant(
        "finish_action",
        {"and v_action.tries > 0": ""},
        redelivery.test_a_late_result_counts_until_it_is_taken_again_or_an_operator_decides,
    ),
    "nudges that an operator has forbidden": Mutant(
        "take_nudges",
        {"harness_agents.allowed\n      and ": ""},
        actions.test_an_agent_that_no_operator_allowed_is_not_nudged,
    ),
    "nudges to the same host that an operator has forbidden": Mutant(
        "allow_nudges",
        {"not p_only_new\n    and ": ""},
        actions.test_an_agent_that_no_operator_allowed_is_not_nudged,
    ),
    "tasks that any agent may have": Mutant(
        "enqueue_harness_task",
        {"'assigned_agent', v_url": "'assigned_agent', null"},
        tasks.test_an_agent_gets_its_own_tasks_only_the_oldest_first,
        WRONG,
    ),
    "another task under the same id": Mutant(
        "enqueue_harness_task",
        {"is distinct from ('harness', v_url, p_payload)": "is null"},
        tasks.test_a_task_with_an_id_is_stored_once,
    ),
    "a timeout that is not five minutes": Mutant(
        "register_harness_agent",
        {"coalesce(v_heartbeat_s, 100), v_now, v_now": "30, v_now, v_now"},
        tasks.test_a_claim_lasts_five_minutes_from_the_last_heartbeat,
    ),
    "one retry too few": Mutant(
        "ensure_harness_queue",
        {'"max_attempts": 4': '"max_attempts": 3'},
        tasks.test_after_three_retries_a_task_fails,
    ),
    "a retry that waits": Mutant(
        "ensure_harness_queue",
        {'"strategy": "immediate", ': ""},
        tasks.test_after_three_retries_a_task_fails,
    ),
    "claims of other queues requeued": Mutant(
        "requeue_harness_tasks",
        {"and tasks.queue = 'harness' and tasks.assigned_agent is not null": ""},
        tasks.test_silent_claims_of_other_queues_are_left_to_the_reaper,
    ),
    "claims of tasks without an agent requeued": Mutant(
        "requeue_harness_tasks",
        {"and tasks.assigned_agent is not null": ""},
        foreign_tasks.test_a_silent_claim_of_a_task_without_an_agent_is_left_to_the_reaper,
    ),
    "tasks without an agent for every agent": Mutant(
        "lane_matches_agent",
        {"or p_lane.queue <> all (p_agent.assigned_only)": "or true"},
        lambda driver: foreign_tasks.test_a_task_without_an_agent_goes_to_no_agent_of_the_harness(
            driver, "code"
        ),
    ),
    "probes without an agent for every agent": Mutant(
        "probe_lanes",
        {"and treadle.lane_matches_agent(lane, p_agent)": ""},
        foreign_tasks.test_the_probe_of_a_breaker_goes_to_no_agent_of_the_harness,
    ),
    "an agent that is registered as another": Mutant(
        "register_harness_agent",
        {"      assigned_only = '{harness}',\n": ""},
        foreign_tasks.test_an_agent_that_was_registered_as_another_has_its_own_tasks_only,
    ),
    "a used token that is not rejected": Mutant(
        "claim_harness_task",
        {"perform treadle.check_token_unused(v_url, p_token);": "null;"},
        lambda driver: foreign_tasks.test_a_token_whose_claim_expired_must_be_replaced(driver, 0),
    ),
    "a token that is used up by an earlier claim": Mutant(
        "check_token_unused",
        {"or exists (": "or false and exists ("},
        lambda driver: foreign_tasks.test_a_token_whose_claim_expired_must_be_replaced(driver, 1),
    ),
    "another agent's task in the way": Mutant(
        "check_token_unused",
        {" and lanes.agent_id = p_url": ""},
        foreign_tasks.test_a_token_is_not_refused_because_of_another_agent_s_task,
        STOPPED,
    ),
    "an output that is none stops the drain": Mutant(
        "take_actions",
        {"coalesce(done.output, 'null')": "done.output"},
        lambda driver: foreign_tasks.test_an_output_that_is_not_a_decision_does_not_stop_the_others(
            driver, None
        ),
        STOPPED,
    ),
    "results without an agent acted on": Mutant(
        "take_actions",
        {" and tasks.assigned_agent is not null": ""},
        foreign_tasks.test_a_result_of_a_task_without_an_agent_is_not_acted_on,
    ),
    "a lost claim that is not reported": Mutant(
        "heartbeat_harness_task",
        {"if v_verdict <> 'ok' then": "if false then"},
        lambda driver: tasks.test_a_lost_claim_cannot_change_the_task(driver, "beat"),
    ),
    "an action log that is not asked": Mutant(
        "take_actions",
        {
            "on conflict (task_id) do nothing": (
                "on conflict (task_id) do update set status = 'executing', ended_at = null,"
                " token = excluded.token, lease_until = excluded.lease_until"
            ),
            """and not exists (
          select from treadle.harness_actions where harness_actions.task_id = tasks.id
        )""": "",
        },
        actions.test_a_decision_that_is_in_the_log_is_not_acted_on_again,
    ),
    "taking again takes more": Mutant(
        "take_actions",
        {"and harness_actions.token = p_token\n  ) then": "and false\n  ) then"},
        actions.test_taking_that_is_asked_for_again_gives_the_same_actions,
    ),
    "more taken than asked for": Mutant(
        "take_actions",
        {"limit p_limit - v_again": "limit p_limit"},
        actions.test_no_more_are_taken_than_were_asked_for,
    ),
    "a try before its time": Mutant(
        "take_actions",
        {"and due.next_try_at <= v_now": ""},
        actions.test_a_callback_that_fails_is_tried_again_later_and_three_times_at_most,
    ),
    "tries without an end": Mutant(
        "finish_action",
        {"when v_action.tries < p_max_tries\n      and (": "when ("},
        actions.test_a_callback_that_fails_is_tried_again_later_and_three_times_at_most,
    ),
    "an ending by anybody": Mutant(
        "finish_action",
        {"and harness_actions.token = p_token": ""},
        lambda driver: actions.test_an_operator_has_an_action_executed_again(driver, "failed"),
    ),
    "an ending that is changed later": Mutant(
        "finish_action",
        {"v_action.status not in ('executing', 'interrupted')": "false"},
        actions.test_an_ending_that_is_sent_again_changes_nothing,
        STOPPED,
    ),
    "done and not marked so": Mutant(
        "finish_action",
        {"perform treadle.close_action(p_id, p_token);": "null;"},
        actions.test_a_decision_is_logged_when_it_is_taken_and_done_afterwards,
    ),
    "interrupted while it runs": Mutant(
        "interrupt_actions",
        {"and stopped.lease_until < v_now": ""},
        actions.test_an_action_of_a_dead_harness_is_interrupted_and_not_repeated,
    ),
    "a lease for anybody": Mutant(
        "renew_actions",
        {" and given.token = harness_actions.token": ""},
        actions.test_a_lease_that_is_renewed_lasts,
    ),
    "run again while it runs": Mutant(
        "lock_action",
        {"and v_action.lease_until < treadle.clock()": ""},
        lambda driver: actions.test_an_action_that_runs_or_is_done_is_not_decided_about(
            driver, "rerun_action"
        ),
    ),
    "nudged again and again": Mutant(
        "take_nudges",
        {
            "and coalesce(harness_nudges.attempt < waiting.attempt, true)": "",
            "where harness_nudges.attempt < excluded.attempt": "",
        },
        actions.test_an_agent_is_nudged_once_for_each_time_a_task_becomes_pending,
    ),
    "credentials in payloads": Mutant(
        "enqueue_harness_task",
        {"where p_allow_secrets is not true": "where false"},
        secrets.test_neither_a_payload_nor_a_decision_with_one_is_stored,
    ),
    "credentials in decisions": Mutant(
        "complete_harness_task",
        {"where p_allow_secrets is not true": "where false"},
        secrets.test_neither_a_payload_nor_a_decision_with_one_is_stored,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
