"""A trigger or webhook for an event that never happens is rejected: an unknown kind or filter."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.events import FROM_OUTSIDE, own_kinds
from tests.drivers.refusals import refused, unchanged
from tests.drivers.triggers import define, emit, fire
from treadle.db.install import files as sql_files

URL = "https://example.org/in"
# A test message, which is not stored as an event.
NO_EVENTS = {"webhook.test"}
PAST = re.compile(r"[a-z_]+\.(set|went_offline|run_manually|nudges_forbidden|timed_out|[a-z_]+ed)")
# Calls of functions that write the end of a kind which they are given.
TELLING = {
    "task": r"(?<!function treadle\.)(?:audit_tasks|notify_released)\([^;']+'([a-z_]+)'",
    "wait": r"emit_wait_event\(\s*\w+, '([a-z_]+)'",
    "webhook": r"emit_webhook_event\([^;,']*'([a-z_]+)'(?: else '([a-z_]+)')?",
    "token": r"emit_token_event\('([a-z_]+)'",
    "harness": r"emit_action_event\(\w+, '([a-z_]+)'",
    "work": r"p_kind => '([a-z_]+)'",
}
# Words that are not written out where the kind is made.
STATES = {
    "agent": "activated drain_started went_offline",
    "budget": "warned exhausted",
    "dag": "failed reopened progressed completed cancelled",
    "harness": "failed interrupted retry_scheduled",
    "task": "retried cancelled dead_lettered",
    "trigger": "failed refused",
    "webhook": "failed paused",
    "work": "queued dispatched started blocked completed failed cancelled updated",
}


def told() -> set[str]:
    """The kinds whose ends are written where the functions above are called."""
    files = Path(sql_files.sql_dir(), "functions").rglob("*.sql")
    text = "\n".join(re.sub(r"--[^\n]*", "", file.read_text()) for file in files)
    return {
        f"{noun}.{word}"
        for noun, pattern in TELLING.items()
        for match in re.finditer(pattern, text)
        for word in match.groups()
        if word
    }


def test_the_list_has_every_kind_that_is_written_and_no_other(driver: Driver) -> None:
    written = {kind for kind in own_kinds() if not kind.endswith(".")} | told()
    written |= {f"{noun}.{word}" for noun, words in STATES.items() for word in words.split()}

    listed = driver.value("select treadle.builtin_event_kinds()")

    assert written - NO_EVENTS | FROM_OUTSIDE == set(listed)
    assert sorted(listed) == listed


def test_every_kind_is_a_noun_and_a_past_tense_and_is_documented(driver: Driver) -> None:
    listed = driver.value("select treadle.builtin_event_kinds()")
    page = Path(sql_files.sql_dir()).parent / "docs/reference/events.md"
    documented = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", page.read_text()))

    assert [kind for kind in listed if not PAST.fullmatch(kind)] == []
    assert documented == set(listed) | NO_EVENTS | {"invoice.paid"}


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("task.complete", "task.completed"),
        ("task.*", "task.dead_lettered"),
        ("dag.", "dag.failed"),
        ("webhook.recieved", "webhook.received"),
        ("invoice.*", "Name one kind"),
        ("*", "Name one kind"),
    ],
)
def test_a_trigger_for_what_never_happens_is_refused(driver: Driver, kind: str, hint: str) -> None:
    with (
        unchanged(driver),
        pytest.raises(psycopg.Error, match="no event has the kind") as raised,
        driver.conn.transaction(),
    ):
        define(driver, on=kind)

    assert raised.value.sqlstate == "TR001"
    assert hint in (raised.value.diag.message_hint or "")


def add(driver: Driver, **settings: Any) -> None:
    driver.rows("select treadle.define_webhook('ops', %s)", Jsonb({"url": URL, **settings}))


@pytest.mark.parametrize("kind", ["task.complete", "task.complet.*", "dag.x*", "work."])
def test_a_webhook_for_what_never_happens_is_refused(driver: Driver, kind: str) -> None:
    with unchanged(driver), refused("TR001", "no event has the kind"):
        add(driver, kinds=["dag.*", kind])


@pytest.mark.parametrize("kind", ["*", "task.*", "task.dead*", "t*", "invoice.*", "paid", "task"])
def test_other_names_and_endings_are_free_for_a_webhook(driver: Driver, kind: str) -> None:
    add(driver, kinds=[kind])


def test_any_name_that_is_not_ours_is_free_for_a_trigger(driver: Driver) -> None:
    for n, kind in enumerate(("paid", "invoice.paid", "tasks.done", "task", "webhook.received")):
        define(driver, f"t{n}", on=kind)
        emit(driver, kind)
    assert len(fire(driver)) == 5


def test_a_filter_of_a_trigger_names_what_an_event_has(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "no event has 'tpe'"), driver.conn.transaction():
        define(driver, filter={"key": "a", "tpe": "x"})


def test_a_filter_of_a_webhook_names_what_is_sent(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "no event has 'task_typ'"):
        add(driver, filter={"queue": "default", "task_typ": "x"})


def test_all_that_an_event_has_can_be_named(driver: Driver) -> None:
    made = """select ids[1] from treadle.create_dag('{"name": "d", "tasks": [{"type": "code"}]}')"""
    emit(driver, "paid", key="k", task=driver.value(made))
    event = "from treadle.events where kind = 'paid'"
    facts = driver.value(f"select treadle.event_json(events) {event}")
    sent = driver.value(f"select treadle.event_document(events) {event}")

    assert set(facts) == set(driver.value("select treadle.event_fields()"))
    define(driver, filter=facts)
    add(driver, filter={"dag_id": None, "queue": None, **sent})
