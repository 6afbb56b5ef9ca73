"""An invalid task is rejected in SQL with a clear error, and nothing changes."""

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

NUMBERS = """enqueue_task('default', 'code', ('{{"a": [' || repeat('{},', {}) || '1]}}')::jsonb)"""

# What is sent, the SQLSTATE, and words of the message. What jsonb itself refuses has
# PostgreSQL's own code.
BAD: dict[str, tuple[str, str, str]] = {
    "unknown type": ("enqueue_task('default', 'cdoe')", "TR203", "no task type 'cdoe'"),
    "no type": ("enqueue_task('default', null)", "TR203", "no task type null"),
    "unknown queue": ("enqueue_task('nope', 'code')", "TR202", "no queue 'nope'"),
    "long queue name": ("enqueue_task(repeat('x', 100000), 'code')", "TR202", "no queue"),
    "NUL": ("enqueue_task('default', 'code', '{\"a\": \"\\u0000\"}')", "22P05", "Unicode"),
    "NUL in a key": ("enqueue_task('default', 'code', '{\"\\u0000\": 1}')", "22P05", "Unicode"),
    "lone surrogate": ("enqueue_task('default', 'code', '{\"a\": \"\\ud800\"}')", "22P02", "json"),
    "NaN": ("enqueue_task('default', 'code', '{\"a\": NaN}')", "22P02", "json"),
    "Infinity": ("enqueue_task('default', 'code', '{\"a\": Infinity}')", "22P02", "json"),
    "not an object": ("enqueue_task('default', 'code', '[]')", "TR001", "not array"),
    "a string": ("enqueue_task('default', 'code', '\"x\"')", "TR001", "not string"),
    "json null": ("enqueue_task('default', 'code', 'null')", "TR001", "not null"),
    "no spec": ("enqueue_task('default', 'code', null)", "TR001", "missing"),
    "10,000 deep": (
        "enqueue_task('default', 'code', ('{\"a\":' || repeat('[', 10000) || repeat(']', 10000)"
        " || '}')::jsonb)",
        "TR001",
        "64 levels",
    ),
    "65 deep": (
        "enqueue_task('default', 'code', ('{\"a\":' || repeat('[', 65) || repeat(']', 65)"
        " || '}')::jsonb)",
        "TR001",
        "64 levels",
    ),
    "too large": (
        "enqueue_task('default', 'code', jsonb_build_object('a', repeat('x', 1048577)))",
        "TR002",
        "1048576 are allowed",
    ),
    "12,000 numbers of 100,000 digits": (
        NUMBERS.format("1e100000", 12000),
        "TR001",
        "too long to send",
    ),
    "60,000 numbers of 16,000 digits behind the point": (
        NUMBERS.format("1e-16000", 60000),
        "TR001",
        "too long to send",
    ),
    "small, and a megabyte when sent": (
        NUMBERS.format("1e100000", 11),
        "TR001",
        "too long to send",
    ),
    "priority 101": ("enqueue_task('default', 'code', '{}', 101)", "TR001", "priority"),
    "priority -1": ("enqueue_task('default', 'code', '{}', -1)", "TR001", "priority"),
    "priority 2^31 - 1": ("enqueue_task('default', 'code', '{}', 2147483647)", "TR001", "0 to 100"),
    "run_at infinity": (
        "enqueue_task('default', 'code', p_run_at => 'infinity')",
        "TR001",
        "run_at must be a time",
    ),
    "run_at -infinity": (
        "enqueue_task('default', 'code', p_run_at => '-infinity')",
        "TR001",
        "run_at",
    ),
    "run_at in 20 years": (
        "enqueue_task('default', 'code', p_run_at => now() + interval '20 years')",
        "TR001",
        "run_at",
    ),
    "delay -1": ("enqueue_task('default', 'code', p_delay_s => -1)", "TR001", "delay_s must be"),
    "delay inf": ("enqueue_task('default', 'code', p_delay_s => 'inf')", "TR001", "delay_s"),
    "delay NaN": ("enqueue_task('default', 'code', p_delay_s => 'NaN')", "TR001", "delay_s"),
    "delay 1e300": ("enqueue_task('default', 'code', p_delay_s => 1e300)", "TR001", "delay_s"),
    "empty key": (
        "enqueue_task('default', 'code', p_idempotency_key => '')",
        "TR001",
        "1 to 200 characters, not 0",
    ),
    "10 kB key": (
        "enqueue_task('default', 'code', p_idempotency_key => repeat('k', 10240))",
        "TR001",
        "1 to 200 characters, not 10240",
    ),
    "201 letters of 3 bytes": (
        "enqueue_task('default', 'code', p_idempotency_key => repeat('→', 201))",
        "TR001",
        "1 to 200 characters, not 201",
    ),
    "options not an object": (
        "enqueue_task('default', 'code', p_options => '[1]')",
        "TR001",
        "the options must be a JSON object",
    ),
    "keys of another length": (
        "enqueue_batch('default', 'code', array['{}']::jsonb[], p_keys => array['a', 'b'])",
        "TR001",
        "1 ids but 2 keys",
    ),
    "one bad spec among good ones": (
        "enqueue_batch('default', 'code', array['{}', '{}', '1']::jsonb[])",
        "TR001",
        "not number",
    ),
    "tasks not an array": ("enqueue_tasks('{}')", "TR001", "JSON array of objects"),
    "a task not an object": ("enqueue_tasks('[1]')", "TR001", "JSON array of objects"),
    "a task without a type": ("enqueue_tasks('[{}]')", "TR203", "no task type null"),
    "one bad task among good ones": (
        'enqueue_tasks(\'[{"type": "code"}, {"type": "nope"}]\')',
        "TR203",
        "no task type 'nope'",
    ),
}

BAD_OPTIONS: dict[str, tuple[str, str]] = {
    '{"prioritty": 1}': ("TR001", "unknown option 'prioritty'"),
    '{"priority": "abc"}': ("TR001", "priority must be a whole number"),
    '{"priority": 1.5e9}': ("TR001", "priority must be"),
    '{"priority": "NaN"}': ("TR001", "priority must be"),
    '{"timeout_s": 0}': ("TR001", "timeout_s must be a number from 0.001 to 31536000"),
    '{"timeout_s": -1}': ("TR001", "timeout_s must"),
    '{"timeout_s": "NaN"}': ("TR001", "timeout_s must"),
    '{"timeout_s": "Infinity"}': ("TR001", "timeout_s must"),
    '{"max_attempts": 0}': ("TR001", "max_attempts must be a whole number from 1 to 1000"),
    '{"max_attempts": 100000}': ("TR001", "max_attempts must be"),
    '{"ageing_rate": -1}': ("TR001", "ageing_rate must"),
    '{"ageing_rate": "NaN"}': ("TR001", "ageing_rate must"),
    '{"max_cost_usd": -0.01}': ("TR001", "max_cost_usd must"),
    '{"max_cost_usd": "NaN"}': ("TR001", "max_cost_usd must"),
    '{"deadline_at": "infinity"}': ("TR001", "deadline_at must be a time"),
    '{"deadline_at": "9999-12-31T23:59:59-14:00"}': ("TR001", "deadline_at must be a time"),
    '{"deadline_at": "1969-12-31T23:59:59Z"}': ("TR001", "deadline_at must be a time"),
    '{"run_at": "0001-01-01T00:00:00+14:00"}': ("TR001", "run_at must be a time"),
    '{"deadline_at": "tomorrowish"}': ("TR001", "deadline_at must be a time"),
    '{"delay_s": 1, "run_at": "2027-01-31T17:00Z"}': (
        "TR001",
        "run_at and delay_s cannot be combined",
    ),
    '{"hold": "perhaps"}': ("TR001", "hold must be true or false"),
    '{"project_id": "x"}': ("TR001", "project_id must be a UUID"),
    '{"title": "t", "tags": "x", "notes": "n"}': ("TR001", "tags must be a list"),
    '{"delay_s": "soon"}': ("TR001", "delay_s must be a number"),
    '{"urgency": "soon"}': ("TR001", "urgency must be a whole number"),
    '{"concurrency_key": "k", "concurrency_limit": []}': (
        "TR001",
        "concurrency_limit must be a whole number",
    ),
    '{"capabilities": [null]}': ("TR001", "capabilities"),
    '{"consumer": ""}': ("TR001", "consumer must"),
    '{"retry": []}': ("TR001", "a retry policy must be a JSON object"),
    '{"retry": {"strategy": "linear"}}': ("TR001", "strategy cannot be"),
    '{"retry": {"initial_delay_s": -1}}': ("TR001", "initial_delay_s cannot be"),
    '{"retry": {"initial_delay_s": 1e400}}': ("TR001", "initial_delay_s cannot be"),
    '{"retry": {"max_delay_s": "1"}}': ("TR001", "max_delay_s cannot be"),
    '{"retry": {"multiplier": 0}}': ("TR001", "multiplier cannot be"),
    '{"retry": {"jitter": 1}}': ("TR001", "jitter cannot be"),
    '{"retry": {"retry_on": "error"}}': ("TR001", "retry_on cannot be"),
    '{"retry": {"no_retry_on": null}}': ("TR001", "no_retry_on cannot be"),
    '{"retry": {"max_rate_limits": -1}}': ("TR001", "max_rate_limits cannot be"),
    '{"retry": {"retries": 3}}': ("TR001", "retries cannot be"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_task_is_refused_and_nothing_changes(driver: Driver, name: str) -> None:
    call, sqlstate, words = BAD[name]

    with unchanged(driver), refused(sqlstate, words):
        driver.rows(f"select * from treadle.{call}")


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_a_bad_option_is_refused_and_nothing_changes(driver: Driver, options: str) -> None:
    sqlstate, words = BAD_OPTIONS[options]

    with unchanged(driver):
        with refused(sqlstate, words):
            driver.rows("select treadle.enqueue_task('default', 'code', p_options => %s)", options)
        with refused(sqlstate, words):
            task = Jsonb([{"type": "code"}])
            driver.rows(
                """
                select * from treadle.enqueue_tasks(
                  jsonb_build_array(%s::jsonb -> 0 || %s::jsonb)
                )
                """,
                task,
                options,
            )


def test_a_spec_of_64_levels_and_of_the_size_allowed_is_taken(driver: Driver) -> None:
    deep = '{"a":' * 64 + "1" + "}" * 64
    driver.rows("select treadle.enqueue_task('default', 'code', %s)", deep)
    driver.rows(
        "select treadle.enqueue_task('default', 'code', jsonb_build_object('a', repeat('x', %s)))",
        1_048_000,
    )

    assert len(driver.claim("a", 10)) == 2


def test_a_few_long_numbers_are_taken_and_do_not_block_the_lane(driver: Driver) -> None:
    driver.rows("select treadle.enqueue_task('default', 'code', '{\"n\": 1e5000, \"x\": 1e-5000}')")
    driver.enqueue()

    assert len(driver.rows("select id from treadle.claim_tasks('a', p_limit => 10)")) == 2


def test_a_queue_may_allow_larger_specs(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('big', '{\"max_spec_bytes\": 2000000}')")
    spec = {"a": "x" * 1_500_000}

    driver.enqueue(spec, queue="big")

    with refused("TR002", "2000000 are allowed"):
        driver.enqueue({"a": "x" * 2_000_001}, queue="big")
