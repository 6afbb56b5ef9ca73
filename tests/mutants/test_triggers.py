"""The guards of triggers can fail: each is broken once, and a test must notice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

rates = Killers("breakers.test_failure_rates")
completed = Killers("events.test_completed_events")
kinds = Killers("events.test_event_kinds")
order = Killers("events.test_event_order")
own = Killers("events.test_own_events")
pauses = Killers("queues.test_pauses")
bounds = Killers("triggers.test_trigger_bounds")
queues = Killers("triggers.test_trigger_full_queues")
templates = Killers("triggers.test_trigger_templates")
triggers = Killers("triggers.test_triggers")
wake = Killers("triggers.test_trigger_wake")

pytestmark = pytest.mark.mutant

WRONG = (*FAILED, ValueError)

MUTANTS = {
    "a new trigger whose first event notifies no scheduler": Mutant(
        "define_trigger",
        {"perform treadle.listen_for_trigger(v_new.on_event);": ""},
        lambda driver: wake.test_the_first_event_of_a_trigger_notifies_the_schedulers(
            driver, "defined"
        ),
    ),
    "a resumed trigger whose first event notifies no scheduler": Mutant(
        "resume_trigger",
        {"perform treadle.listen_for_trigger(triggers.on_event)": "perform triggers.on_event"},
        lambda driver: wake.test_the_first_event_of_a_trigger_notifies_the_schedulers(
            driver, "resumed"
        ),
    ),
    "a new trigger that takes the kinds of the others away": Mutant(
        "listen_for_trigger",
        {"unnest(event_listeners.kinds || excluded.kinds)": "unnest(excluded.kinds)"},
        lambda driver: wake.test_the_first_event_of_a_trigger_notifies_the_schedulers(
            driver, "defined"
        ),
    ),
    "a renewal with the kinds from before a definition": Mutant(
        "renew_trigger_listener",
        {"values ('triggers', clock_timestamp(), '{}')": "select '', null, null where false"},
        wake.test_a_renewal_keeps_the_kind_of_a_trigger_that_is_being_defined,
    ),
    "an event that is not final and is left to the next poll": Mutant(
        "next_schedule_at",
        {"treadle.next_trigger_at()": "null::timestamptz"},
        wake.test_an_event_that_is_not_final_is_looked_at_again_soon,
    ),
    "a kind of ours that anybody emits": Mutant(
        "builtin_event_kinds",
        {"'token.created', 'token.revoked',": ""},
        own.test_no_kind_that_treadle_writes_can_be_emitted,
    ),
    "an unlisted kind": Mutant(
        "builtin_event_kinds",
        {"'task.parked',": ""},
        kinds.test_the_list_has_every_kind_that_is_written_and_no_other,
    ),
    "a trigger for a kind that never is": Mutant(
        "check_trigger",
        {"perform treadle.check_kinds(array[p_trigger.on_event], false, 'on');": ""},
        lambda driver: kinds.test_a_trigger_for_what_never_happens_is_refused(
            driver, "task.complete", ""
        ),
    ),
    "an ending that stands for nothing": Mutant(
        "check_kinds",
        {"when p_wildcards": "when true"},
        lambda driver: kinds.test_a_trigger_for_what_never_happens_is_refused(
            driver, "invoice.*", ""
        ),
    ),
    "a filter that no event passes": Mutant(
        "check_event_filter",
        {"where keys.name <> all (p_known)": "where false"},
        kinds.test_a_filter_of_a_trigger_names_what_an_event_has,
    ),
    "a second pause that forgets why": Mutant(
        "pause_trigger",
        {"coalesce(p_reason, triggers.paused_reason)": "p_reason"},
        lambda driver: pauses.test_a_second_pause_keeps_the_reason(driver, "trigger"),
    ),
    "a sender that ends where its id begins": Mutant(
        "receive_webhook",
        {"jsonb_build_array(p_name, p_dedup_key)::text": "p_name || ':' || p_dedup_key"},
        own.test_two_senders_and_their_ids_are_never_taken_for_one,
    ),
    "events that are not safe to read yet": Mutant(
        "next_events",
        {"and events.xid < (select treadle.stable_xid())": ""},
        order.test_an_event_that_commits_late_is_not_lost,
    ),
    "an order by number alone": Mutant(
        "next_events",
        {
            "(events.xid, events.id) > (p_xid, p_id)": "events.id > p_id",
            "order by events.xid, events.id": "order by events.id",
        },
        order.test_the_lower_number_of_the_younger_transaction_is_not_passed_by,
    ),
    "a place that is not held": Mutant(
        "fire_triggers",
        {"for update skip locked": ""},
        order.test_a_second_process_that_fires_triggers_returns_at_once,
        (*FAILED, Exception),
    ),
    "a place that does not move": Mutant(
        "fire_triggers",
        {"set xid = v_place.xid, id = v_place.id, read_at": "set read_at"},
        order.test_a_crash_before_the_commit_fires_again_and_after_it_never,
    ),
    "a pair that fires again": Mutant(
        "fire_one",
        {"and trigger_fires.verdict = 'fired'": "and false"},
        order.test_a_reader_that_is_set_back_does_not_fire_twice,
    ),
    "a filter that lets all pass": Mutant(
        "fire_one",
        {"not v_facts @> p_trigger.filter or": ""},
        triggers.test_a_dead_lettered_task_of_a_class_is_reviewed,
        WRONG,
    ),
    "a trigger for earlier events": Mutant(
        "fire_events",
        {" and event.at >= triggers.active_at": ""},
        triggers.test_what_happened_before_a_trigger_was_made_does_not_count,
        WRONG,
    ),
    "a paused trigger that fires": Mutant(
        "resume_trigger",
        {"set active_at = treadle.clock(), ": "set "},
        triggers.test_a_paused_trigger_fires_only_on_what_happens_after_it_was_resumed,
    ),
    "events of unselected completions": Mutant(
        "has_event_consumer",
        {"coalesce(triggers.filter ->> 'type', p_type) = p_type": "true"},
        completed.test_without_a_trigger_a_completion_writes_no_event,
    ),
    "a webhook for everything that makes completions pay": Mutant(
        "has_event_consumer",
        {"like '_%*'": "like '%*'"},
        lambda driver: completed.test_a_webhook_that_names_completions_gets_them(driver, "*", 0),
    ),
    "two events of one completion": Mutant(
        "emit_completed_events",
        {" and queues.audit <> 'full'": ""},
        completed.test_a_queue_with_a_full_audit_has_the_event_once,
    ),
    "a loop without an end": Mutant(
        "fire_limit",
        {"p_depth > p_trigger.max_depth": "false"},
        bounds.test_a_loop_of_one_trigger_ends_at_its_depth,
    ),
    "a depth that a DAG forgets": Mutant(
        "trigger_depth",
        {"|| array(select line.dag_id from line)": "", "p_event.dag_id]": "null]"},
        bounds.test_a_loop_over_two_triggers_and_a_dag_ends,
    ),
    "a depth that a child forgets": Mutant(
        "trigger_depth",
        {"array[line.parent_id, line.forked_from]": "array[line.forked_from]"},
        bounds.test_spawned_and_forked_tasks_and_their_events_have_the_depth,
    ),
    "an hour without a limit": Mutant(
        "fire_limit",
        {"p_trigger.max_per_hour <= (": "0 > ("},
        bounds.test_the_hourly_limit_is_enforced_and_reported_once,
    ),
    "a limit that is reported each time": Mutant(
        "record_fire_counts",
        {"coalesce(triggers.refused_at < p_now - interval '1 hour', true)": "true"},
        bounds.test_the_hourly_limit_is_enforced_and_reported_once,
    ),
    "one failure that stops all": Mutant(
        "try_fire",
        {"when others then": "when division_by_zero then"},
        bounds.test_a_trigger_that_fails_stops_no_other_and_can_be_fired_by_hand,
        (*FAILED, Exception),
    ),
    "a full queue that loses the work": Mutant(
        "try_fire",
        {"sqlstate = 'TR105'": "false"},
        queues.test_work_for_a_full_queue_is_created_in_order_when_there_is_capacity,
    ),
    "a full queue that is tried for ever": Mutant(
        "try_fire",
        {"and v_fire.fired_at > p_now - c_retry_for": ""},
        queues.test_after_an_hour_it_has_failed_and_can_be_fired_by_hand,
        WRONG,
    ),
    "a paused trigger that tries again": Mutant(
        "retry_fires",
        {"(v_wait.cause).paused_at is null and": ""},
        lambda driver: queues.test_events_that_can_no_longer_be_retried_have_failed(
            driver, "pause"
        ),
    ),
    "trouble of the server that is the trigger's fault": Mutant(
        "try_fire",
        {"\n    or insufficient_resources": ""},
        queues.test_a_lack_of_server_resources_does_not_fail_the_trigger,
    ),
    "a limit that is changed and not looked at": Mutant(
        "define_trigger",
        {
            "when triggers.failure_rate = excluded.failure_rate then triggers.passed_at": (
                "when true then triggers.passed_at"
            )
        },
        rates.test_a_changed_limit_is_evaluated_again,
    ),
    "a listener that stays without its completions": Mutant(
        "has_event_consumer",
        {"p_kind = any (event_listeners.kinds)": "false"},
        completed.test_a_listener_that_names_completions_gets_them,
    ),
    "values that are filled in again": Mutant(
        "fill_template",
        {"return v_found;": "return treadle.fill_template(v_found, p_facts);"},
        templates.test_values_of_an_event_are_never_looked_at_again,
    ),
    "a check that leaves its sample": Mutant(
        "check_template",
        {"raise exception using errcode = 'TRDRY';": ""},
        templates.test_checking_a_template_leaves_nothing_behind,
    ),
    "a review in every minute": Mutant(
        "check_failure_rates",
        {"coalesce(v_trigger.passed_at <= v_now - v_window, true)": "true"},
        rates.test_once_in_a_window_and_again_in_the_next,
    ),
    "ten that look and ten that file": Mutant(
        "check_failure_rates",
        {"for no key update skip locked": ""},
        rates.test_ten_that_look_at_once_file_one,
    ),
    "failures of all types": Mutant(
        "failure_counts",
        {"attempts.outcome = 'failed'\n    and tasks.type = p_type": "attempts.outcome = 'failed'"},
        rates.test_a_type_that_fails_too_often_files_one_review_with_the_figures,
    ),
    "rate limits that count": Mutant(
        "failure_counts",
        {" and attempts.outcome = 'failed'": ""},
        rates.test_rate_limits_and_cancelled_attempts_are_not_failures,
    ),
    "an unrequested NOTIFY": Mutant(
        "tg_events__notify",
        {"where event_listeners.listening_until > clock_timestamp()": "where true"},
        order.test_listeners_are_notified_once_and_only_while_they_listen,
    ),
    "a restore that loses the places of readers": Mutant(
        "rebase_events",
        {"where (event_readers.xid, event_readers.id) < (events.xid, events.id)": ""},
        order.test_after_a_restore_readers_continue_where_they_were,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
