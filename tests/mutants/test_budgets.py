"""The checks of money can fail: each guard is broken once, and a test must notice."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

claims = Killers("budgets.test_budget_claims")
ends = Killers("budgets.test_budget_ends")
exhausted = Killers("budgets.test_budget_exhausted")
periods = Killers("budgets.test_budget_periods")
running = Killers("budgets.test_budget_running")
setting = Killers("budgets.test_budget_setting")

pytestmark = pytest.mark.mutant


def gives_back(end: Callable[..., None]) -> Callable[[Driver], None]:
    """The test of one way a claim ends."""
    return partial(ends.ending_gives_back, end=end)


MUTANTS = {
    "no lock on a budget": Mutant(
        "lock_budgets",
        {"      for no key update\n": "", "    for no key update skip locked\n": ""},
        claims.test_two_claims_never_promise_the_same_dollar,
    ),
    "no prefix sum": Mutant(
        "filter_affordable",
        {"v_left[v_task.spots[v_at]] - coalesce(v_task.need, 0)": "v_left[v_task.spots[v_at]]"},
        partial(claims.test_a_claim_reserves_and_the_rest_waits, scope="all"),
    ),
    "a task is parked that others could claim": Mutant(
        "filter_affordable",
        {"filter (where not v_own[full_at.spot])": "filter (where true)"},
        partial(claims.test_a_claim_reserves_and_the_rest_waits, scope="agent"),
    ),
    "nothing reserved": Mutant(
        "reserve_rows",
        {"budgets.reserved_usd + wanted.usd": "budgets.reserved_usd"},
        partial(claims.test_a_claim_reserves_and_the_rest_waits, scope="all"),
    ),
    "kept at a completion": Mutant(
        "propagate_completed",
        {"perform treadle.release_resources(p_counted)": "perform 1"},
        gives_back(ends.complete),
    ),
    "kept at a failure": Mutant(
        "end_attempts",
        {"perform treadle.release_resources(v_counted)": "perform 1"},
        gives_back(ends.fail),
    ),
    "kept by the reaper": Mutant(
        "end_attempts",
        {"perform treadle.release_resources(v_counted)": "perform 1"},
        gives_back(ends.reap),
    ),
    "kept at a release": Mutant(
        "release_tasks",
        {"perform treadle.release_resources(v_budgeted)": "perform 1"},
        gives_back(ends.release),
    ),
    "kept at a cancellation": Mutant(
        "cancel_rows",
        {"perform treadle.release_resources(array_agg(held.id))": "perform 1"},
        gives_back(ends.cancel),
    ),
    "kept by a task that waits": Mutant(
        "suspend_claim",
        {"perform treadle.release_resources(array[p_task.id])": "perform 1"},
        gives_back(ends.suspend),
    ),
    "released money without a notification": Mutant(
        "release_reservations",
        {"perform treadle.request_budgets(v_ids)": "perform 1"},
        gives_back(ends.complete),
    ),
    "settled again for a repeat": Mutant(
        "add_spend",
        {
            "if v_new.calls = 0 then\n    return 0;\n  end if;": "v_new.usd := (\n"
            "    select sum((given.call ->> 'usd')::numeric)\n"
            "    from jsonb_array_elements(p_calls) as given (call)\n  );"
            "v_new.input_tokens := 0; v_new.output_tokens := 0;"
        },
        ends.test_a_call_is_settled_once_by_its_id,
    ),
    "the reservation is not drawn on": Mutant(
        "settle_spend",
        {"- least(reservations.usd, p_usd)": "- 0"},
        ends.test_spending_moves_money_from_reserved_to_spent,
    ),
    "a new budget does not wait for concurrent spend": Mutant(
        "make_budget",
        {"lock table treadle.spend in share mode;": ""},
        ends.test_a_budget_that_was_made_while_a_call_was_paid_for_counts_it,
    ),
    "asked by every promoter": Mutant(
        "review_budget",
        {"where waits.budget_id = p_budget and waits.status = 'open'": "where false"},
        exhausted.test_one_task_asks_and_the_others_stay_parked,
    ),
    "a raise leaves the question open": Mutant(
        "change_budget",
        {"perform treadle.close_budget_waits(v_budget.id, p_actor)": "perform 1"},
        exhausted.test_a_raise_answers_the_question,
    ),
    "any limit is taken": Mutant(
        "check_spent",
        {"p_limit < p_budget.spent_usd + p_budget.reserved_usd": "false"},
        setting.test_a_limit_below_what_is_spent_and_reserved_is_refused,
    ),
    "no new period": Mutant(
        "roll_budgets",
        {"budgets.id = any (p_ids)\n      and": "false and"},
        periods.test_what_is_reserved_stays_reserved_in_the_new_period,
    ),
    "the old period comes back": Mutant(
        "roll_budgets",
        {"budgets.period_start < treadle": "budgets.period_start <> treadle"},
        periods.test_a_clock_that_goes_back_opens_no_old_period,
    ),
    "a task within its reservation is stopped": Mutant(
        "budget_verdict",
        {"elsif v_room < p_usd then": "elsif treadle.budget_left(v_budget, v_now) < p_usd then"},
        running.test_a_task_within_its_reservation_is_not_stopped_by_others,
    ),
    "a passed limit is not noticed": Mutant(
        "budget_verdict",
        {"if v_own < p_usd then": "if false then"},
        running.test_no_ends_a_task_that_has_passed_its_limit,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_of_money_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
