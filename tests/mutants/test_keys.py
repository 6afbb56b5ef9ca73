"""The guards of slots, depth limits and bulk calls: each is broken once, and a test notices."""

import pytest
from psycopg import errors

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

races = Killers("keys.test_concurrency_key_races")
rules = Killers("keys.test_concurrency_key_rules")
ways = Killers("keys.test_concurrency_key_ways")
keys = Killers("keys.test_concurrency_keys")
depth = Killers("queues.test_depth_limit")
bulk = Killers("tasks.test_bulk")

pytestmark = pytest.mark.mutant

COUNTED = "select v_free - count(*)\n"
REQUEST = "  perform treadle.request_slots(array_agg(distinct tasks.concurrency_key))\n"


def crowd_a_few_times(driver: Driver) -> None:
    """A race is lost soon, not always at once."""
    for _ in range(5):
        races.test_sixteen_clients_never_exceed_a_limit_and_do_all_the_work(
            driver, "read committed"
        )


MUTANTS = {
    "slots counted without the lock": Mutant(
        "lock_key",
        {"  for update skip locked;": ";"},
        crowd_a_few_times,
        (*FAILED, errors.DatabaseError),
    ),
    "a key that is waited for": Mutant(
        "lock_key",
        {"  for update skip locked;": "  for update;"},
        races.test_a_key_that_another_session_has_in_hand_is_left_to_it,
        errors.LockNotAvailable,
    ),
    "a first use that is waited for": Mutant(
        "make_key",
        {
            "set lock_timeout = '1ms'\n": "",
            "exception\n  when lock_not_available then\n    return false;\n": "",
        },
        races.test_the_first_use_of_a_key_does_not_wait_for_a_concurrent_first_use,
        errors.LockNotAvailable,
    ),
    "a key that is locked but not written": Mutant(
        "admit_slots",
        {
            "  update treadle.concurrency_keys\n": "  select concurrency_keys.max into v_free\n"
            "  from treadle.concurrency_keys where concurrency_keys.key = p_key;\n"
            "  update treadle.concurrency_keys\n",
            "  where concurrency_keys.key = p_key\n  returning": "  where false\n  returning",
            "concurrency_keys.max into v_free;\n": "concurrency_keys.max into v_wanted;\n",
        },
        races.test_an_admission_by_an_old_snapshot_fails_instead_of_giving_a_slot_twice,
    ),
    "one slot too many": Mutant(
        "admit_slots",
        {COUNTED: "select v_free + 1 - count(*)\n"},
        keys.test_a_key_without_a_limit_has_one_slot,
    ),
    "a locked task that is forgotten": Mutant(
        "admit_slots",
        {"where cardinality(v_rows) < v_free and exists": "where false and exists"},
        races.test_a_task_that_somebody_has_locked_is_asked_for_again,
    ),
    "a hold that a producer can end": Mutant(
        "admit_slots",
        {"when concurrency_keys.max = 0 then 0 else": "when false then 0 else"},
        rules.test_a_limit_of_zero_holds_all_tasks_until_an_operator_raises_it,
    ),
    "a slot that is freed without a word": Mutant(
        "release_resources",
        {REQUEST: "  perform count(*)\n"},
        lambda driver: keys.test_a_slot_is_free_for_the_next_once_its_task_is(driver, "completed"),
    ),
    "a dependency that keeps the slot": Mutant(
        "add_dependency",
        {"    slot = null,\n": ""},
        lambda driver: keys.test_a_slot_is_free_for_the_next_once_its_task_is(
            driver, "waiting for one more after its release"
        ),
        errors.CheckViolation,
    ),
    "a dependency that frees a slot without a word": Mutant(
        "add_dependency",
        {"where v_row is not null and v_task.slot is not null": "where false"},
        lambda driver: keys.test_a_slot_is_free_for_the_next_once_its_task_is(
            driver, "waiting for one more after its release"
        ),
    ),
    "a new task that asks for no slot": Mutant(
        "tg_tasks__notify",
        {"where added.slot = 'waiting'": "where false"},
        keys.test_a_key_without_a_limit_has_one_slot,
    ),
    "a plain insert with a slot of its own": Mutant(
        "tg_tasks__prepare",
        {
            "  new.slot := null;\n  if": "  if",
            "(new.concurrency_key, null)": "(new.concurrency_key, new.slot)",
        },
        lambda driver: ways.test_a_task_waits_for_a_slot_however_it_becomes_claimable(
            driver, "plain insert that claims to have a slot"
        ),
    ),
    "ranks of lanes that age differently compared as they are": Mutant(
        "pick_waiting",
        {"head.rank - treadle.ageing_offset_at(lanes.ageing, v_ms)": "head.rank"},
        keys.test_a_slot_goes_to_the_best_effective_priority_over_lanes,
    ),
    "a key whose many requests hide the others": Mutant(
        "requested_keys",
        {"admissions.key > v_key": "admissions.key = v_key"},
        rules.test_many_requests_for_one_key_do_not_hide_another,
    ),
    "depth counted without the lock": Mutant(
        "check_depth",
        {
            "  insert into treadle.locks (name) values ('depth:' || p_queue)\n"
            "  on conflict (name) do update set touched = locks.touched + 1;\n": ""
        },
        depth.test_a_producer_waits_for_another_before_it_counts,
    ),
    "depth locked but not written": Mutant(
        "check_depth",
        {
            "do update set touched = locks.touched + 1;": "do nothing;\n"
            "  perform from treadle.locks where locks.name = 'depth:' || p_queue for update;"
        },
        depth.test_a_snapshot_from_before_another_producer_is_not_trusted,
    ),
    "one task too many": Mutant(
        "check_depth",
        {"if v_depth > v_queue.max_depth then": "if v_depth > v_queue.max_depth + 1 then"},
        lambda driver: depth.test_concurrent_submitters_against_a_capacity_of_50_get_exactly_50_in(
            driver, 16
        ),
    ),
    "tasks that are not marked": Mutant(
        "apply_defaults",
        {"v_task.capped := p_queue.max_depth is not null": "v_task.capped := false"},
        depth.test_a_batch_is_stored_completely_or_not_at_all,
    ),
    "a limit that ignores waiting tasks": Mutant(
        "define_queue",
        {"    perform treadle.cap_tasks(p_name, v_new.max_depth is not null);\n": "    null;\n"},
        depth.test_earlier_tasks_count_against_a_new_limit_until_it_is_removed,
    ),
    "a filter that is not applied again": Mutant(
        "cancel_tasks_where",
        {"from treadle.matching_tasks(p_filter, v_states, v_ids) as": "from unnest(v_found) as"},
        bulk.test_a_task_that_moved_on_before_it_was_locked_is_left_alone,
    ),
    "an empty filter": Mutant(
        "check_filter",
        {"when p_filter = '{}' then 'it is empty and would match every task'\n": ""},
        lambda driver: bulk.test_a_filter_that_is_empty_unknown_or_malformed_is_refused(
            driver, "cancel"
        ),
    ),
    "one refusal that stops all": Mutant(
        "retry_wave",
        {"  for v_at in 1..cardinality(v_wave) loop": "  for v_at in 1..0 loop"},
        bulk.test_tasks_that_cannot_be_retried_are_reported_and_the_rest_is_retried,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
