"""An invalid call is rejected in SQL with a clear error and changes nothing."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"
ONE, NONE = f"array['{UNKNOWN_ID}']::uuid[]", "array[]::uuid[]"
TWO = f"array['{UNKNOWN_ID}', '{UNKNOWN_ID}']::uuid[]"

BAD: dict[str, tuple[str, str]] = {
    # ids and tokens of different lengths
    f"complete_tasks({ONE}, {TWO})": ("TR001", "1 ids but 2 tokens"),
    f"complete_tasks({ONE}, null)": ("TR001", "1 ids but 0 tokens"),
    f"complete_tasks(null, {ONE})": ("TR001", "0 ids but 1 tokens"),
    f"complete_tasks({ONE}, {ONE}, array[]::jsonb[])": ("TR001", "1 ids but 0 outputs"),
    f"fail_tasks({TWO}, {ONE})": ("TR001", "2 ids but 1 tokens"),
    f"fail_tasks({ONE}, {ONE}, array['error', 'crash'])": ("TR001", "1 ids but 2 classes"),
    f"fail_tasks({ONE}, {ONE}, p_errors => array['x', 'y'])": ("TR001", "1 ids but 2 errors"),
    f"release_tasks({TWO}, {ONE})": ("TR001", "2 ids but 1 tokens"),
    f"start_tasks({NONE}, {ONE})": ("TR001", "0 ids but 1 tokens"),
    f"heartbeat_tasks({TWO}, {ONE})": ("TR001", "2 ids but 1 tokens"),
    f"heartbeat_tasks({ONE}, {ONE}, array[]::jsonb[])": ("TR001", "1 ids but 0 progress"),
    # what does not exist
    f"complete_task('{UNKNOWN_ID}', '{UNKNOWN_ID}')": ("TR101", "is no longer valid"),
    f"fail_task('{UNKNOWN_ID}', '{UNKNOWN_ID}')": ("TR101", "is no longer valid"),
    f"cancel_task('{UNKNOWN_ID}')": ("TR201", "there is no task"),
    "cancel_task(null)": ("TR201", "there is no task null"),
    f"retry_task('{UNKNOWN_ID}')": ("TR201", "there is no task"),
    f"effective_priority('{UNKNOWN_ID}')": ("TR201", "there is no task"),
    "claim_tasks('nobody')": ("TR204", "agent 'nobody' is not registered"),
    "claim_tasks(null)": ("TR204", "agent null is not registered"),
    "claim_tasks('a', array['nope'])": ("TR202", "no queue 'nope'"),
    "heartbeat_agent('nobody')": ("TR204", "agent 'nobody' is not registered"),
    "set_agent_status('nobody', 'active')": ("TR204", "agent 'nobody' is not registered"),
    "pause_queue('nope')": ("TR202", "no queue 'nope'"),
    "resume_queue('nope')": ("TR202", "no queue 'nope'"),
    # limits and states
    "claim_tasks('a', p_limit => 0)": ("TR001", "limit must be 1 to 10000, not 0"),
    "claim_tasks('a', p_limit => -1)": ("TR001", "limit must be 1 to 10000"),
    "claim_tasks('a', p_limit => null)": ("TR001", "limit must be 1 to 10000, not null"),
    "claim_tasks('a', p_limit => 10001)": ("TR001", "limit must be 1 to 10000"),
    "take_results('me', 0)": ("TR001", "limit of 1 to 10000"),
    "take_results(null)": ("TR001", "needs a consumer"),
    "set_agent_status('a', 'asleep')": ("TR001", "cannot be 'asleep'"),
    "set_agent_status('a', null)": ("TR001", "cannot be"),
    # agents
    "register_agent('')": ("TR001", "cannot be registered"),
    "register_agent(null)": ("TR001", "cannot be registered"),
    "register_agent(repeat('x', 201))": ("TR001", "cannot be registered"),
    "register_agent('x', p_capabilities => null)": ("TR001", "cannot be registered"),
    "register_agent('x', p_max_concurrent_tasks => -1)": ("TR001", "cannot be registered"),
    "register_agent('x', p_heartbeat_s => 0)": ("TR001", "cannot be registered"),
    "register_agent('x', p_heartbeat_s => 'NaN')": ("TR001", "cannot be registered"),
    "register_agent('x', p_heartbeat_s => 'Infinity')": ("TR001", "cannot be registered"),
    "register_agent('x', p_claim_ttl_s => -1)": ("TR001", "cannot be registered"),
    "register_agent('x', p_budget_usd => -1)": ("TR001", "limit_usd must be 0 to"),
    "register_agent('x', p_budget_usd => 1e20)": ("TR001", "limit_usd must be 0 to"),
    # queues and types
    "define_queue('')": ("TR001", "cannot be defined"),
    "define_queue(null)": ("TR001", "cannot be defined"),
    "define_queue('Upper')": ("TR001", "cannot be defined"),
    "define_queue('a b')": ("TR001", "cannot be defined"),
    "define_queue('a;drop')": ("TR001", "cannot be defined"),
    "define_queue(E'a\\n')": ("TR001", "cannot be defined"),
    "define_queue('../etc')": ("TR001", "cannot be defined"),
    "define_queue(repeat('x', 49))": ("TR001", "cannot be defined"),
    "define_queue('q', '[]')": ("TR001", "settings must be a JSON object"),
    "define_queue('q', '{\"depth\": 1}')": ("TR001", "unknown setting 'depth'"),
    "define_queue('q', '{\"priority\": 101}')": ("TR001", "priority must be a whole number"),
    "define_queue('q', '{\"priority\": \"x\"}')": ("TR001", "priority must be a whole number"),
    "define_queue('q', '{\"audit\": \"some\"}')": ("TR001", "cannot be defined"),
    "define_queue('q', '{\"max_spec_bytes\": 0}')": ("TR001", "cannot be defined"),
    'define_queue(\'q\', \'{"retry": {"strategy": "x"}}\')': ("TR001", "strategy cannot be"),
    "define_type('')": ("TR001", "cannot be defined"),
    "define_type('a b')": ("TR001", "cannot be defined"),
    "define_type(repeat('x', 101))": ("TR001", "cannot be defined"),
    "define_type('t', '{\"timeout_s\": -1}')": ("TR001", "timeout_s must be a number"),
    "define_type('t', '{\"timeout_s\": \"NaN\"}')": ("TR001", "timeout_s must be a number"),
    "define_type('t', '{\"retries\": 3}')": ("TR001", "unknown setting 'retries'"),
    "declare_types('{\"bad name\": {}}')": ("TR001", "cannot be defined"),
    "declare_types('[]')": ("TR001", "object"),
    "declare_types('{\"t\": []}')": ("TR001", "settings must be a JSON object"),
    "declare_types('{}', array['Bad'])": ("TR001", "cannot be defined"),
}


@pytest.mark.parametrize("call", BAD, ids=[call.replace(UNKNOWN_ID, "x") for call in BAD])
def test_a_bad_call_is_refused_and_nothing_changes(driver: Driver, call: str) -> None:
    driver.enqueue(hold=True)
    sqlstate, words = BAD[call]

    with unchanged(driver), refused(sqlstate, words):
        driver.rows(f"select * from treadle.{call}")


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    ("resolution", "changes", "words"),
    [
        ("delete", {}, "unknown resolution .delete.: use retry"),
        (None, {}, "unknown resolution NULL"),
        ("retry", {"priority": 1}, "cannot be combined with"),
        ("cancel", {"priority": 1}, "cannot be combined with"),
        ("modify_and_retry", {}, "cannot be combined with"),
        ("modify_and_retry", {"prioritty": 1}, "unknown option"),
        ("modify_and_retry", {"priority": 101}, "priority must"),
        ("modify_and_retry", {"spec": []}, "object"),
        ("modify_and_retry", {"spec": 1}, "object"),
        ("modify_and_retry", {"retry": {"strategy": "x"}}, "strategy cannot be"),
        ("modify_and_retry", {"tags": ["x"]}, "tags"),
        ("modify_and_retry", {"delay_s": 60}, "delay_s"),
    ],
)
def test_a_bad_resolution_is_refused_and_nothing_changes(
    driver: Driver, resolution: str | None, changes: dict[str, Any], words: str
) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim)

    with unchanged(driver), refused("TR001", words):
        driver.rows("select treadle.retry_task(%s, %s, %s)", claim.id, resolution, Jsonb(changes))


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    ("changes", "sqlstate"),
    [
        ({"queue": "nope"}, "TR202"),
        ({"type": "nope"}, "TR203"),
        ({"spec": {"a": "x" * 1_048_577}}, "TR002"),
    ],
)
def test_changes_to_what_does_not_exist_or_is_too_large_are_refused(
    driver: Driver, changes: dict[str, Any], sqlstate: str
) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim)

    with unchanged(driver), refused(sqlstate):
        driver.retry(claim.id, "modify_and_retry", changes)


def test_an_unknown_failure_class_counts_as_an_error(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert driver.fail(claim, failure_class="gremlins") == "retrying"
    assert driver.attempts(claim.id)[0]["class"] == "error"


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf"), 1e300])
def test_a_senseless_retry_delay_from_a_handler_is_kept_within_reason(
    driver: Driver, delay: float
) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert driver.fail(claim, retry_after=delay) == "retrying"
    assert driver.value(
        "select retry_at between clock_timestamp() and clock_timestamp() + interval '31 days'"
        " from treadle.tasks"
    )
