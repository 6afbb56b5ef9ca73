"""Only the roles named in docs/how-to/install-and-upgrade.md can read payloads."""

import re
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.roles import become
from tests.drivers.steps import save_step
from tests.drivers.waits import ask, emit, suspend

PAGE = Path(__file__).parents[3] / "docs/how-to/install-and-upgrade.md"
NEEDLE = "needle-in-a-payload"
SECRET = "whsec_" + "bm90LWZvci1hbnlib2R5" * 2
# Functions whose results could hold a payload by their type, and do not.
HARMLESS = {
    "read_queue",  # the settings of a queue
    "retry_policy",  # the same of a task
    "attempt_models",  # names of models
    "create_dag",  # ids
    "reserve_artifact",  # where a file goes
    *("try_cancel_push", "try_enqueue_batch", "try_submit_push"),  # ids, and why they refuse
    "record_spend",
    "reserve_spend",
    *("prune_events", "prune_tasks", "schema_version"),
}
# Types that can hold a payload, beside the composite types of the schema.
COLUMNS = r"\m(jsonb|bytea|record)\M"


def documented() -> dict[str, set[str]]:
    section = PAGE.read_text().split("### Who can read payloads")[1].split("###")[0]
    rows = re.findall(r"^\| `(treadle_\w+)` \| (.*) \|$", section, re.MULTILINE)
    return {role: set(re.findall(r"`(\w+)`", functions)) for role, functions in rows}


@pytest.mark.requirement("B16")
def test_each_role_has_the_functions_that_are_written_down(driver: Driver) -> None:
    found: dict[str, set[str]] = {}
    for role in documented():
        rows = driver.rows(
            """
            select pg_proc.proname from pg_proc
            inner join pg_type on pg_proc.prorettype = pg_type.oid
            where
              pg_proc.pronamespace = 'treadle'::regnamespace
              and has_function_privilege(%s, pg_proc.oid, 'execute')
              and (
                pg_get_function_result(pg_proc.oid) ~ %s
                or pg_type.typnamespace = 'treadle'::regnamespace
              )
            """,
            role,
            COLUMNS,
        )
        found[role] = {name for (name,) in rows} - HARMLESS

    assert found == documented()


@pytest.fixture
def furnished(driver: Driver) -> Driver:
    """A database that has the needle in payloads of every kind."""
    driver.enqueue({"text": NEEDLE})
    claim = driver.claim_one("a")
    save_step(driver, claim, "draft", NEEDLE)
    suspend(driver, claim, ask(driver, claim, question=NEEDLE))
    driver.enqueue({"text": "other"}, max_attempts=1)
    driver.fail(driver.claim_one("a"), error=NEEDLE)
    driver.enqueue({"text": "third"})
    driver.complete(driver.claim_one("a"), {"text": NEEDLE})
    emit(driver, "news", {"text": NEEDLE})
    return driver


def readable(driver: Driver, role: str) -> dict[str, str]:
    """The text of every view that a role may read."""
    session = become(driver, role)
    views = session.rows(
        """
        select relname from pg_class
        where
          relnamespace = 'treadle'::regnamespace and relkind = 'v'
          and has_table_privilege(oid, 'select')
        """
    )
    return {
        name: str(session.rows(f"select v::text from treadle.{name} as v")) for (name,) in views
    }


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("role", ["treadle_producer", "treadle_worker"])
def test_producers_and_workers_read_no_payload_in_a_view(furnished: Driver, role: str) -> None:
    found = readable(furnished, role)

    assert found.keys() == {"task_fields", "transitions", "work_transitions"}
    assert [name for name, text in found.items() if NEEDLE in text] == []


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("role", ["treadle_observer", "treadle_operator"])
def test_observers_and_operators_read_payloads_in_views(furnished: Driver, role: str) -> None:
    found = readable(furnished, role)

    having = {name for name, text in found.items() if NEEDLE in text}
    assert having >= {"task_details", "task_steps", "wait_details", "event_log", "dispatch_log"}


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("role", ["treadle_observer", "treadle_operator"])
def test_no_role_can_read_secrets_in_a_view(furnished: Driver, role: str) -> None:
    token = furnished.value("""select treadle.create_token('t', '{"scopes": ["read"]}')""")
    settings = Jsonb({"url": "https://example.org/", "secret": SECRET})
    furnished.rows("select treadle.define_webhook('w', %s)", settings)
    furnished.enqueue()
    claim = str(furnished.claim_one("a").token)
    [(hashed,)] = furnished.rows("select encode(secret_hash, 'hex') from treadle.api_tokens")

    for name, text in readable(furnished, role).items():
        for secret in (token, hashed, SECRET, claim):
            assert secret not in text, name
