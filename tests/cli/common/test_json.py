"""Every command with a result prints one JSON document: names of the views, UTC, full ids."""

from typing import Any

import psycopg
import pytest

from tests.drivers import commands
from tests.drivers.commands import TIME, Cli, Conn

SPEC = {"text": "naïve 日本 \u009b", "number": 2**70}
# A show, what runs until it is stopped, and SQL.
WITHOUT = {
    "demo", "dev", "worker", "reaper", "promoter", "scheduler", "notifier", "dispatcher",
    "harness run", "server", "db sql",
}  # fmt: skip


@pytest.fixture(scope="module")
def filled(still_url: str) -> dict[str, str]:
    """A database with a task of each kind to show, on a queue that stands still."""
    with psycopg.connect(still_url, autocommit=True) as conn:
        found = {
            "completed": commands.complete(conn, {"words": 182}),
            "dead": commands.dead_letter(conn, error="ValueError: boom\n\nTraceback"),
            "ready": commands.enqueue(conn, SPEC),
        }
        conn.execute("select treadle.pause_queue('default')")
    return found


def times(value: Any) -> list[str]:
    """Every value under a name that ends in _at."""
    if isinstance(value, list):
        return [found for each in value for found in times(each)]
    if not isinstance(value, dict):
        return []
    own = [each for name, each in value.items() if name.endswith("_at") and each is not None]
    return own + times(list(value.values()))


LISTS = {
    "tasks list": {"id", "queue", "type", "status", "priority", "attempt", "created_at"},
    "dead-letters list": {"task_id", "class", "reason", "attempts", "poison_pill", "history"},
    "agents list": {"agent_id", "status", "alive", "current_tasks", "heartbeat_at"},
    "queues list": {"queue", "paused", "ready", "in_flight", "oldest_ready_age", "dead_letters"},
    "queues stuck": {"reason", "status", "queue", "type", "tasks", "since", "example_id"},
    "config show": {"name", "value", "origin", "description"},
    "db status": {"version", "name", "state", "applied_at", "applied_by"},
    "doctor": {"check", "status", "found", "todo"},
}


@pytest.mark.parametrize("words", LISTS)
def test_a_list_is_an_object_with_items(words: str, still: Cli, filled: dict[str, str]) -> None:
    shown = still(*words.split(), "--json").json

    assert shown["items"]
    for item in shown["items"]:
        assert item.keys() >= LISTS[words]
    assert all(TIME.fullmatch(each) for each in times(shown))


def test_a_task_has_all_its_fields_its_attempts_and_the_reason(
    still: Cli, filled: dict[str, str]
) -> None:
    shown = still("tasks", "show", filled["dead"], "--json").json

    assert shown["id"] == filled["dead"]
    assert shown["status"] == "dead_lettered"
    assert shown["why"] == "dead-lettered after 1 attempt: error: ValueError: boom"
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["failed"]
    assert shown["attempts"][0]["error"] == "ValueError: boom\n\nTraceback"
    assert times(shown)
    assert all(TIME.fullmatch(each) for each in times(shown))


def test_a_dead_letter_has_its_history_in_utc(still: Cli, filled: dict[str, str]) -> None:
    shown = still("dead-letters", "show", filled["dead"], "--json", env={"PGTZ": "Asia/Tokyo"}).json

    assert shown["task_id"] == filled["dead"]
    assert [each["class"] for each in shown["history"]] == ["error"]
    assert all(TIME.fullmatch(each) for each in times(shown))


def test_an_awaited_task_has_its_output(still: Cli, filled: dict[str, str]) -> None:
    shown = still("tasks", "wait", filled["completed"], "--json").json

    assert shown == {"id": filled["completed"], "status": "completed", "output": {"words": 182}}


def test_an_awaited_task_that_failed_has_the_reason(still: Cli, filled: dict[str, str]) -> None:
    failed = still("tasks", "wait", filled["dead"], "--json")

    assert failed.code == 8
    assert failed.json["status"] == "dead_lettered"
    assert failed.json["failure_class"] == "error"
    assert failed.err.startswith("error: ")


def test_an_enqueued_task_has_its_id_and_whether_it_is_new(cli: Cli) -> None:
    arguments = ("tasks", "enqueue", "code", "--key", "k", "--json")

    first, second = cli(*arguments).json, cli(*arguments).json

    assert first["created"] is True
    assert second == {"id": first["id"], "created": False}


def test_status_shows_the_state_of_the_schema(cli: Cli) -> None:
    assert cli("db", "migrate", "--json").json["changed"] is False
    assert cli("db", "status", "--json").json["current"] is True
    assert cli("config", "check", "--json").json == {"ok": True, "problems": []}


def test_a_schema_that_was_changed_by_hand_is_reported(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("create table treadle.strange ()")

    found = cli("db", "verify", "--json")

    assert found.code == 1
    assert found.json["ok"] is False
    assert any("treadle.strange is unexpected" in each for each in found.json["problems"])


def test_characters_of_any_language_and_large_numbers_survive(
    still: Cli, filled: dict[str, str]
) -> None:
    assert still("tasks", "show", filled["ready"], "--json").json["spec"] == SPEC


def test_every_command_that_answers_has_json() -> None:
    without = {
        " ".join(words)
        for words, command in commands.commands()
        if not hasattr(command, "commands")
        and not any("--json" in option.opts for option in command.params)
    }

    assert without == WITHOUT


CHANGES = {
    "schedules create a @daily --type code": ("a", None),
    "schedules pause a": ("a", "paused"),
    "schedules resume a": ("a", "active"),
    "schedules delete a --yes": ("a", "deleted"),
    "triggers pause b": ("b", "paused"),
    "triggers resume b": ("b", "active"),
    "triggers delete b --yes": ("b", "deleted"),
    "webhooks pause c": ("c", "paused"),
    "webhooks resume c": ("c", "active"),
    "webhooks delete c --yes": ("c", "deleted"),
    "types create t": ("t", "created"),
    "types update t": ("t", "updated"),
    "types pause t": ("t", "paused"),
    "types resume t": ("t", "open"),
    "queues create q": ("q", "created"),
    "queues update q": ("q", "updated"),
    "queues pause q": ("q", "paused"),
    "queues resume q": ("q", "open"),
    "breakers trip t": ("t", "open"),
    "breakers reset t": ("t", "closed"),
    "gates create g --limit 1 --per 1": ("g", "created"),
    "gates update g --limit 2": ("g", "updated"),
    "gates close g": ("g", "closed"),
    "gates open g": ("g", "open"),
    "keys set k 3": ("k", "set"),
    "retention set events 90d": ("events", "set"),
    "budgets set all 5": ("all", "set"),
    "budgets delete all --yes": ("all", "deleted"),
    "agents drain w": ("w", "draining"),
    "agents activate w": ("w", "active"),
    "agents offline w": ("w", "offline"),
    "agents create p --url https://example.org": ("p", "created"),
    "agents update p --url https://example.org": ("p", "updated"),
    "agents delete p --yes": ("p", "deleted"),
    "harness allow https://example.org": ("https://example.org", "allowed"),
    "harness forbid https://example.org": ("https://example.org", "forbidden"),
}


def test_a_change_is_printed_as_json_too(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("select treadle.register_agent('w')")
    cli("triggers", "create", "b", "--on", "paid", "--task", '{"type": "code"}')
    cli("webhooks", "create", "c", "https://example.org/hook")

    found = {words: cli(*words.split(), "--json") for words in CHANGES}

    assert {words: each.err for words, each in found.items() if each.err} == {}
    told = {words: (each.json["name"], each.json.get("status")) for words, each in found.items()}
    assert told == CHANGES
