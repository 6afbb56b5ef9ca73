"""The guards of gates and breakers can fail: each is broken once, and a test must notice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

probes = Killers("breakers.test_breaker_probes")
breakers = Killers("breakers.test_breakers")
gates = Killers("gates.test_gates")
races = Killers("gates.test_rate_limit_races")
texts = Killers("gates.test_rate_limit_texts")
limits = Killers("gates.test_rate_limits")
slowdown = Killers("gates.test_slowdown")
pauses = Killers("queues.test_pauses")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError)

MUTANTS = {
    "a count without a lock": Mutant(
        "lock_gates",
        {"for no key update\n": "\n", "where gates.key = any (v_keys);": "where false;"},
        lambda driver: races.test_a_claim_that_waited_for_another_counts_what_that_one_took(
            driver, "read committed"
        ),
    ),
    "a lock without a write": Mutant(
        "lock_gates",
        {"where gates.key = any (v_keys);": "where false;"},
        lambda driver: races.test_a_claim_that_waited_for_another_counts_what_that_one_took(
            driver, "repeatable read"
        ),
    ),
    "a window that is too short": Mutant(
        "gate_room",
        {"p_now, gates.period_s) - 60": "p_now, gates.period_s) - 50"},
        limits.test_what_started_almost_a_period_ago_still_counts,
    ),
    "a gate that opens too early": Mutant(
        "next_room_at",
        {"+ 61)": "+ 31)"},
        limits.test_so_many_start_in_a_period_and_then_none_until_there_is_room,
    ),
    "a claim that is not booked": Mutant(
        "charge_gates",
        {"having count(*) > 0": "having false"},
        limits.test_a_released_claim_still_counts_against_the_limit,
    ),
    "a small task that slips past": Mutant(
        "pass_gates",
        {"v_left[v_task.gates[v_at]] := null;": ""},
        limits.test_later_tasks_do_not_overtake_a_task_that_needs_more,
    ),
    "a large task that stands in the way": Mutant(
        "divert_oversized_tasks",
        {"and v_lane is not null": "and false"},
        limits.test_a_task_that_needs_more_than_the_whole_limit_lets_the_others_pass,
    ),
    "spend that is not counted": Mutant(
        "charge_spend",
        {"having count(*) > 0": "having false"},
        limits.test_what_is_spent_beyond_what_was_charged_is_charged_too,
    ),
    "a probe past the limits": Mutant(
        "claim_rows",
        {"v_open.limited := v_open.limited or v_rows <> '{}';": ""},
        limits.test_a_probe_counts_at_the_gates_of_its_lane,
    ),
    "two probes at once": Mutant(
        "pick_probe",
        {"tasks.claim_token = v_breaker.probe_token": "false"},
        probes.test_the_probe_comes_when_it_is_due_and_not_before,
    ),
    "two probes of two sessions": Mutant(
        "pick_probe",
        {"for no key update skip locked": ""},
        lambda driver: probes.test_sixteen_claimers_get_one_probe_between_them(
            driver, "read committed"
        ),
    ),
    "a breaker that any success closes": Mutant(
        "record_success",
        {
            "or (breakers.probe_task = tasks.id and breakers.probe_token = tasks.last_token)": (
                "or true"
            ),
            "    and tasks.last_token = breakers.probe_token": "",
            "inner join treadle.tasks on breakers.probe_task = tasks.id": (
                "inner join treadle.tasks on breakers.type = tasks.type"
            ),
        },
        lambda driver: probes.test_claims_from_before_the_opening_do_not_count(driver, "complete"),
    ),
    "a breaker that any failure opens again": Mutant(
        "count_type_failures",
        {
            "ended.task_id = v_breaker.probe_task": "true",
            " and ended.claim_token = v_breaker.probe_token": "",
        },
        lambda driver: probes.test_claims_from_before_the_opening_do_not_count(driver, "fail"),
    ),
    "failures from before the opening": Mutant(
        "count_type_failures",
        {"ended.claimed_at > coalesce(v_breaker.opened_at, '-infinity')": "true"},
        lambda driver: probes.test_claims_from_before_the_opening_do_not_count(driver, "fail"),
    ),
    "a success that does not reset": Mutant(
        "record_success",
        {"set failures = 0": "set failures = breakers.failures"},
        breakers.test_a_success_in_between_resets_the_count,
        WRONG,
    ),
    "a lost worker that counts for all its tasks": Mutant(
        "count_type_failures",
        {"count(distinct ended.agent_id)": "count(ended.agent_id)"},
        breakers.test_a_dead_worker_counts_as_one_failure_regardless_of_its_tasks,
    ),
    "a lost worker that counts again and again": Mutant(
        "count_type_failures",
        {"and ended.claimed_at <= v_breaker.last_failure_at": "and false"},
        breakers.test_a_dead_worker_counts_as_one_failure_regardless_of_its_tasks,
    ),
    "an open breaker that is claimed": Mutant(
        "open_lanes",
        {"where breakers.state <> 'closed'": "where false"},
        breakers.test_five_failures_in_a_row_keep_the_type_back_and_no_other,
    ),
    "a paused type that is claimed": Mutant(
        "open_lanes",
        {"where task_types.paused_at is not null": "where false"},
        breakers.test_a_paused_type_is_not_claimed_until_it_is_resumed,
    ),
    "a second pause of a type that forgets why": Mutant(
        "pause_type",
        {"coalesce(p_reason, task_types.paused_reason)": "p_reason"},
        lambda driver: pauses.test_a_second_pause_keeps_the_reason(driver, "type"),
    ),
    "a second pause of a queue that forgets why": Mutant(
        "pause_queue",
        {"coalesce(p_reason, queues.paused_reason)": "p_reason"},
        lambda driver: pauses.test_a_second_pause_keeps_the_reason(driver, "queue"),
    ),
    "a slow-down that closes nothing": Mutant(
        "open_lanes",
        {"where gates.closed_until > p_now": "where false"},
        slowdown.test_a_rate_limit_closes_the_gate_for_every_agent_and_no_other_lane,
        WRONG,
    ),
    "each of a burst counts": Mutant(
        "close_rate_limited_gate",
        {"v_new := not coalesce(v_gate.slowed_until > p_now, false);": "v_new := true;"},
        slowdown.test_many_that_meet_it_at_once_are_one_slow_down,
    ),
    "a shorter time that wins": Mutant(
        "close_rate_limited_gate",
        {"greatest(\n    v_gate.closed_until,": "greatest(null,"},
        slowdown.test_a_longer_time_wins_and_a_shorter_one_does_not,
    ),
    "a time without a bound": Mutant(
        "close_rate_limited_gate",
        {"least(p_after_s, 86400)": "least(p_after_s, 864000)"},
        slowdown.test_a_time_is_kept_within_a_day,
    ),
    "a task that does not wait for its gate": Mutant(
        "apply_rate_limits",
        {"v_each.next = 'retrying'": "false"},
        slowdown.test_many_that_meet_it_at_once_are_one_slow_down,
    ),
    "any key that is named": Mutant(
        "gate_of",
        {"where p_key = any (lanes.gates)": ""},
        lambda driver: slowdown.test_which_gate_is_closed(driver, ["llm"], "nonsense", "llm"),
    ),
    "a success before it opened": Mutant(
        "reset_slowdowns",
        {
            "and tasks.claimed_at >= gates.slowed_until": "",
            "and gates.slowed_until <= treadle.clock()": "",
        },
        slowdown.test_a_success_after_the_opening_resets_the_count,
    ),
    "an unknown key": Mutant(
        "gates_of",
        {"is not true": "is null"},
        gates.test_a_task_cannot_name_an_unknown_gate,
    ),
    "a number inside a number": Mutant(
        "rate_limit_in",
        {"(?![[:alnum:]_-]|[.,:][[:digit:]])": ""},
        lambda driver: texts.test_a_text_that_does_not(driver, "task 4290 failed"),
    ),
    "lines of code that look like a rate limit": Mutant(
        "rate_limit_in",
        {'^[ \\t]+File "': '^[ \\t]+Feil "'},
        lambda driver: texts.test_a_text_that_does_not(driver, texts.INNOCENT[14]),
    ),
    "a mistake that is taken for a rate limit": Mutant(
        "rate_limit_in",
        {"([^:]*: )?": ""},
        lambda driver: texts.test_a_text_that_does_not(driver, texts.INNOCENT[16]),
    ),
    "a date by another clock than that of its sender": Mutant(
        "retry_after_in",
        {"coalesce(treadle.http_date_in(p_text, '\\mdate'), p_now)": "p_now"},
        lambda driver: texts.test_the_time_that_a_text_asks_for(driver, texts.SENT_WITH_DATE, 5),
    ),
    "a text that is not looked at": Mutant(
        "failure_class_of",
        {"when treadle.rate_limit_in(p_error) then 'rate_limit'": ""},
        texts.test_an_agent_that_reports_one_failure_by_its_text_needs_no_class,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
