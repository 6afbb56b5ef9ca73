"""Each guard of webhooks, broken on purpose, is noticed by a test."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

kinds = Killers("events.test_event_kinds")
pauses = Killers("queues.test_pauses")
hooks = Killers("webhooks.test_webhook_rows")
settings = Killers("webhooks.test_webhook_settings")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError)

MUTANTS = {
    "a lease that anybody has": Mutant(
        "take_webhooks",
        {"coalesce(webhooks.lease_until <= v_now, true) or": "true or"},
        hooks.test_one_at_a_time_delivers_to_an_endpoint,
        WRONG,
    ),
    "a lease that never ends": Mutant(
        "take_webhooks",
        {"coalesce(webhooks.lease_until <= v_now, true)": "webhooks.lease_until is null"},
        hooks.test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing,
        WRONG,
    ),
    "any token will do": Mutant(
        "lock_webhook",
        {"and webhooks.token = p_token": ""},
        hooks.test_one_at_a_time_delivers_to_an_endpoint,
        WRONG,
    ),
    "a release by anybody": Mutant(
        "release_webhook",
        {"and webhooks.token = p_token": ""},
        hooks.test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing,
        WRONG,
    ),
    "a place that moves back": Mutant(
        "ack_webhook",
        {"and (event_readers.xid, event_readers.id) < (p_xid, p_id)": ""},
        hooks.test_an_event_that_is_acknowledged_twice_counts_once,
    ),
    "late commits passed by": Mutant(
        "next_events",
        {"and events.xid < (select treadle.stable_xid())": ""},
        hooks.test_events_that_commit_late_are_not_skipped,
    ),
    "wanted events passed by": Mutant(
        "read_webhook",
        {"elsif v_found = 0 then": "end if; if true then"},
        hooks.test_one_at_a_time_delivers_to_an_endpoint,
    ),
    "a scan that stops early": Mutant(
        "read_webhook",
        {"for v_round in 1..20": "for v_round in 1..1"},
        hooks.test_unselected_events_are_skipped_and_later_ones_are_not,
    ),
    "a batch of any size": Mutant(
        "read_webhook",
        {"exit when v_found > 0 and v_bytes > p_max_bytes;": ""},
        hooks.test_a_batch_is_small_and_an_event_that_is_not_comes_alone,
    ),
    "a back-off without a bound": Mutant(
        "webhook_delay",
        {"least(900, power(2, least(p_failures, 12) - 1))": "power(2, p_failures - 1)"},
        hooks.test_the_time_between_tries_doubles_up_to_a_quarter_of_an_hour,
    ),
    "a receiver with an unlimited Retry-After": Mutant(
        "webhook_delay",
        {"least(coalesce(p_after_s, 0), 3600)": "coalesce(p_after_s, 0)"},
        lambda driver: hooks.test_what_the_receiver_asks_for_is_kept_within_an_hour(
            driver, 100_000, 3600
        ),
    ),
    "a kind that never is": Mutant(
        "check_webhook",
        {"perform treadle.check_kinds((p_hook).kinds, true, 'kinds');": ""},
        lambda driver: kinds.test_a_webhook_for_what_never_happens_is_refused(driver, "dag.x*"),
    ),
    "a filter that nothing passes": Mutant(
        "check_webhook",
        {"'queue', 'key'": "'queue', 'task_typ', 'key'"},
        kinds.test_a_filter_of_a_webhook_names_what_is_sent,
    ),
    "a second pause that forgets why": Mutant(
        "pause_webhook",
        {"coalesce(left(p_reason, 500), webhooks.reason)": "left(p_reason, 500)"},
        lambda driver: pauses.test_a_second_pause_keeps_the_reason(driver, "webhook"),
    ),
    "an address of redis that is taken for another": Mutant(
        "check_webhook",
        {"(p_hook).format <> 'redis' and (p_hook).url ~ '^rediss?://'": "false"},
        lambda driver: settings.test_a_webhook_that_could_not_work_is_refused(
            driver, {"url": "redis://cache"}, "redis url needs the name of a stream"
        ),
    ),
    "410 and sent again": Mutant(
        "fail_webhook",
        {"when p_status = 410 then 'paused'": "when false then ''"},
        hooks.test_a_receiver_that_returns_gone_pauses_the_webhook_and_its_events_wait,
    ),
    "a paused webhook that is sent to": Mutant(
        "take_webhooks",
        {"webhooks.status <> 'paused'": "true"},
        hooks.test_a_receiver_that_returns_gone_pauses_the_webhook_and_its_events_wait,
    ),
    "a failing webhook without an event": Mutant(
        "fail_webhook",
        {"if v_new.status <> v_old.status then": "if false then"},
        hooks.test_a_webhook_that_keeps_failing_emits_one_event_and_keeps_its_events,
    ),
    "a pause that is lifted by an answer": Mutant(
        "ack_webhook",
        {"when v_hook.status = 'paused' then 'paused'": "when false then ''"},
        hooks.test_a_pause_while_a_message_is_under_way_does_not_send_it_twice,
    ),
    "a new webhook that misses open events": Mutant(
        "set_webhook_cursor",
        {"treadle.stable_xid()": "pg_current_xact_id()"},
        settings.test_what_is_still_open_when_a_webhook_is_made_comes_to_it,
    ),
    "an address that shows its path": Mutant(
        "emit_webhook_event",
        {
            "jsonb_build_object('webhook', p_name) || p_data": (
                "(select to_jsonb(webhooks) from treadle.webhooks where name = p_name)"
            )
        },
        settings.test_a_secret_is_shown_once_and_is_in_no_view_and_no_event,
    ),
    "tries that pile up": Mutant(
        "record_delivery",
        {"offset 100": "offset 1000"},
        settings.test_a_hundred_tries_are_kept,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
