"""Each guard of submissions, broken on purpose, is noticed by a test."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

sending = Killers("push.test_dispatch")
leases = Killers("push.test_dispatch_leases")
rest = Killers("push.test_dispatch_cooldown")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError)
KEPT = "last.outcome in ('unsure', 'silent', 'error', 'unreachable')"

MUTANTS = {
    "two tasks at one agent": Mutant(
        "dispatch_task",
        {"tasks.agent_id = p_agent and tasks.claim_token <> p_token": "false"},
        sending.test_two_dispatchers_do_not_send_to_one_agent_at_the_same_moment,
    ),
    "an agent that is not locked": Mutant(
        "dispatch_task",
        {"where agents.id = p_agent for no key update": "where agents.id = p_agent"},
        sending.test_two_dispatchers_do_not_send_to_one_agent_at_the_same_moment,
    ),
    "an agent that was not added": Mutant(
        "dispatch_task",
        {
            "or v_target.agent_id is null": "",
            "v_target.url, v_target.allow_private": (
                "coalesce(v_target.url, 'x'), coalesce(v_target.allow_private, false)"
            ),
        },
        sending.test_prompts_are_sent_only_to_agents_that_an_operator_added,
    ),
    "an address that the agent gives": Mutant(
        "dispatch_task",
        {"    v_target.url,": "    (select agents.url from treadle.agents where id = p_agent),"},
        sending.test_prompts_are_sent_only_to_agents_that_an_operator_added,
    ),
    "a claim that the reaper takes": Mutant(
        "dispatch_task",
        {"set lease_until = v_now + make_interval(secs => p_keep_s)": "set lease_until = v_now"},
        lambda driver: leases.test_the_reaper_does_not_reap_an_uncertain_submission_for_a_day(
            driver, False
        ),
    ),
    "a start that shortens the claim": Mutant(
        "accept_dispatch",
        {"greatest(tasks.lease_until, v_until)": "tasks.lease_until"},
        lambda driver: leases.test_the_reaper_does_not_reap_an_uncertain_submission_for_a_day(
            driver, True
        ),
    ),
    "a claim that is not kept": Mutant(
        "renew_dispatches",
        {"greatest(tasks.lease_until, v_now + make_interval(secs => p_keep_s))": "lease_until"},
        lambda driver: leases.test_the_reaper_does_not_reap_an_uncertain_submission_for_a_day(
            driver, True
        ),
    ),
    "any holder will do": Mutant(
        "lock_dispatch",
        {"and dispatches.holder = p_holder": "and dispatches.ended_at is null"},
        leases.test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing,
        WRONG,
    ),
    "given up by anybody": Mutant(
        "expire_dispatch",
        {
            "and dispatches.holder = p_holder": "",
            "treadle.end_dispatch(p_task, p_token, p_holder, v_outcome, p_error)": (
                "treadle.end_dispatch(p_task, p_token, (select dispatches.holder from "
                "treadle.dispatches where claim_token = p_token), v_outcome, p_error)"
            ),
        },
        leases.test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing,
    ),
    "a lease that anybody has": Mutant(
        "take_over_dispatches",
        {"and dispatches.lease_until <= v_now": ""},
        leases.test_a_renewed_submission_is_not_taken_over,
    ),
    "a renewal that does not renew": Mutant(
        "renew_dispatches",
        {"lease_until = v_now + make_interval(secs => p_lease_s),": ""},
        leases.test_a_renewed_submission_is_not_taken_over,
    ),
    "given up without being asked": Mutant(
        "take_over_dispatches",
        {"heard_at = v_now": "heard_at = dispatches.heard_at"},
        leases.test_a_dispatcher_that_takes_over_can_ask_before_it_gives_up,
    ),
    "heard of somebody else": Mutant(
        "renew_dispatches",
        {"when dispatches.claim_token = any (p_heard) then v_now": "when true then v_now"},
        leases.test_an_agent_that_answers_is_not_given_up,
    ),
    "busy stays first": Mutant(
        "settle_dispatch",
        {"set rank = treadle.push_rank(tasks, treadle.clock())": "set rank = tasks.rank"},
        sending.test_busy_goes_to_the_end_of_the_queue_and_counts_no_attempt,
    ),
    "agents that make a poison pill": Mutant(
        "ensure_push_queue",
        {'{"poison": false}': '{"poison": true}'},
        lambda driver: sending.test_agents_use_up_all_the_attempts_that_there_are(driver, "lost"),
    ),
    "an agent that is free at once": Mutant(
        "dispatch_targets",
        {"and not treadle.agent_in_cooldown(push_agents.agent_id, p_cooldown_s)": ""},
        lambda driver: rest.test_an_agent_that_rejected_a_prompt_is_skipped_for_a_while(
            driver, "busy"
        ),
    ),
    "an agent that is sent to at once": Mutant(
        "dispatch_task",
        {"or treadle.agent_in_cooldown(p_agent, p_cooldown_s)": ""},
        lambda driver: rest.test_an_agent_that_rejected_a_prompt_is_skipped_for_a_while(
            driver, "busy"
        ),
    ),
    "an agent that rests after its work": Mutant(
        "agent_in_cooldown",
        {"not in ('completed', 'failed', 'cancelled', 'superseded')": "is not null"},
        lambda driver: rest.test_an_agent_that_has_ended_a_task_is_not_skipped(driver, "failed"),
    ),
    "an agent that may have it is not known": Mutant(
        "dispatch_target_of",
        {"and earlier.number = (p_dispatch).number": "and false"},
        rest.test_a_submission_records_whether_its_agent_may_have_it,
    ),
    "an agent that has said no is taken for silent": Mutant(
        "dispatch_target_of",
        {"and earlier.outcome in ('unsure', 'silent')": ""},
        rest.test_a_submission_records_whether_its_agent_may_have_it,
    ),
    "a refusal that is tried again": Mutant(
        "settle_dispatch",
        {"when p_outcome in ('failed', 'refused') then 'fail'": "when false then ''"},
        lambda driver: sending.test_what_the_agent_decides_is_final(driver, "failed", "failed"),
        (*FAILED, Exception),
    ),
    "a new key for a submission that may have arrived": Mutant(
        "dispatch_number",
        {KEPT: "false"},
        sending.test_a_submission_that_may_have_arrived_is_repeated_with_the_same_key,
    ),
    "a key of its own after an error": Mutant(
        "dispatch_number",
        {"'error', ": ""},
        sending.test_a_submission_that_may_have_arrived_is_repeated_with_the_same_key,
    ),
    "a new key for an unreachable agent": Mutant(
        "dispatch_number",
        {", 'unreachable'": ""},
        sending.test_a_submission_that_may_have_arrived_is_repeated_with_the_same_key,
    ),
    "one key for all": Mutant(
        "dispatch_number",
        {KEPT: "true"},
        sending.test_a_submission_that_may_have_arrived_is_repeated_with_the_same_key,
    ),
    "a silent agent that is never asked": Mutant(
        "dispatch_targets",
        {"or agents.silent": ""},
        sending.test_a_silent_agent_is_checked_and_its_response_reactivates_it,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
