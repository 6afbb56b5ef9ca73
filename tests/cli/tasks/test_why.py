"""`treadle tasks why`: every reason why a task is not running, for people and for programs."""

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_TASK, TIME, Cli, Conn

pytestmark = pytest.mark.requirement("B3")


def test_every_reason_is_a_line(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn, delay_s=180)
    cli("queues", "pause", "default", "--reason", "storm")

    shown = cli("tasks", "why", task[-8:])

    assert shown.code == 0
    head, *rows = shown.rows
    assert head == ["reason", "until", "sentence"]
    assert [row[0] for row in rows] == ["run_at", "queue_paused", "no_agent"]
    assert TIME.fullmatch(rows[0][1])
    assert rows[0][2].endswith(", in 3 min")
    assert rows[1][2].endswith(": storm")


def test_reasons_are_json_with_their_details(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("select treadle.register_agent('a1')")
    task = commands.enqueue(sync_conn)

    shown = cli("tasks", "why", task, "--json").json

    assert shown["id"] == task
    [reason] = shown["reasons"]
    assert reason["reason"] == "claimable"
    assert reason["sentence"] == "claimable now: the next claim of agent a1 takes it"
    assert (reason["until"], reason["detail"]["agent"]) == (None, "a1")


@pytest.mark.parametrize(
    ("state", "words"),
    [("completed", "completed "), ("dead", "dead-lettered after 1 attempt: error: boom")],
)
def test_an_ended_task_is_shown_as_such(state: str, words: str, cli: Cli, sync_conn: Conn) -> None:
    task = (
        commands.complete(sync_conn, 1) if state == "completed" else commands.dead_letter(sync_conn)
    )

    shown = cli("tasks", "why", task)

    assert shown.code == 0
    assert shown.rows[1][2].startswith(words)


def test_on_a_terminal_a_reason_has_a_mark_and_a_colour(database_url: str, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn)

    shown = commands.on_terminal("tasks", "why", task, TREADLE_DATABASE_URL=database_url)

    assert "\x1b[33m● \x1b[0mno live agent serves queue default" in shown


def test_a_task_that_does_not_exist_is_not_found(still: Cli) -> None:
    assert still("tasks", "why", NO_TASK).code == 3
    assert still("tasks", "why", "12345").code == 2


def test_show_has_the_same_reasons(cli: Cli, sync_conn: Conn) -> None:
    task, _ = commands.ask(sync_conn)

    shown = cli("tasks", "show", task, "--json").json

    asked = cli("tasks", "why", task, "--json").json["reasons"]
    assert [each["reason"] for each in shown["reasons"]] == ["question"]
    assert shown["reasons"][0]["detail"] == asked[0]["detail"]
