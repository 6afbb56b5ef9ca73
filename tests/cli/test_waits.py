"""`treadle waits` and `treadle events emit`: list what tasks wait for, and answer it."""

from typing import Any

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn

NO_WAIT = "01890000-0000-7000-8000-00000000dead"
CHOICE = ["red", "blue"]


def test_open_questions_are_listed_the_oldest_first(cli: Cli, sync_conn: Conn) -> None:
    task, wait = commands.ask(sync_conn, approvers=2, expires_s=3600)
    commands.ask(sync_conn, event="invoice.paid", key="4711")
    cli("waits", "answer", wait, "approve", "--actor", "alice")

    head, first, second = cli("waits").rows

    assert head == [
        "id", "task", "title", "opened", "expires", "answers", "options", "question"
    ]  # fmt: skip
    assert first[:3] == [wait, task, "code"]
    assert first[5:] == ["1 of 2: alice", "approve, reject, revise", "Ship it?"]
    assert second[4:] == ["", "", "", "event invoice.paid 4711"]
    assert cli("waits", "-q").out.split()[0] == wait


def test_a_list_without_waits_prints_a_message(cli: Cli) -> None:
    assert cli("waits").err == "no task is waiting\n"
    assert cli("waits", "--json").json == {"items": []}


def test_waits_that_have_ended_are_listed_when_asked_for(cli: Cli, sync_conn: Conn) -> None:
    task, wait = commands.ask(sync_conn, options=CHOICE)
    other, _ = commands.ask(sync_conn)
    cli("waits", "answer", wait, "red", "--actor", "bob")

    assert cli("waits", "-q", "--task", task[-8:]).out == ""
    [row] = cli("waits", "--all", "--task", task, "--json").json["items"]
    assert (row["id"], row["status"], row["answer"]) == (wait, "answered", "red")
    shown = cli("waits", "--all").rows[1:]
    assert [each[1] for each in shown] == ["open", "answered"]
    assert [each[2] for each in shown] == [other, task]
    assert shown[1][6] == "red by bob"


def test_times_of_answers_are_in_utc(cli: Cli, sync_conn: Conn) -> None:
    _, wait = commands.ask(sync_conn, approvers=2)
    cli("waits", "answer", wait, "approve")

    [row] = cli("waits", "--json", env={"PGTZ": "Asia/Tokyo"}).json["items"]

    assert row["answers"][0]["at"].endswith("Z")


def test_an_answer_lets_the_task_continue(cli: Cli, sync_conn: Conn) -> None:
    task, wait = commands.ask(sync_conn, options=CHOICE)
    assert commands.status(sync_conn, task) == "blocked"

    done = cli(
        "waits",
        "answer",
        wait[-8:],
        "blue",
        "--actor",
        "alice",
        "--reason",
        "like the sea",
    )

    assert done.code == 0
    assert done.rows[1] == [wait, "answered"]
    assert commands.status(sync_conn, task) == "ready"
    assert cli("waits", "answer", wait, "blue", "--actor", "alice").rows[1] == [
        wait,
        "already answered",
    ]
    late = cli("waits", "answer", wait, "red", "--actor", "bob")
    assert late.code == 4
    assert 'alice answered "blue"' in late.err


def test_an_approval_shows_the_number_of_votes(cli: Cli, sync_conn: Conn) -> None:
    _, wait = commands.ask(sync_conn, approvers=2)

    assert (
        cli("waits", "answer", wait, "approve", "--actor", "alice").rows[1][1]
        == "recorded (1 of 2)"
    )
    assert (
        cli("waits", "answer", wait, "approve", "--actor", "alice").rows[1][1]
        == "already recorded (1 of 2)"
    )
    done = cli("waits", "answer", wait, "approve", "--actor", "bob", "--json").json
    assert (done["verdict"], done["status"], done["answered_by"]) == ("answered", "answered", "bob")
    assert [each["actor"] for each in done["answers"]] == ["alice", "bob"]


@pytest.mark.parametrize(
    ("wait", "text", "kept"),
    [
        ({}, "yes please", "yes please"),
        ({}, '{"a": [1, null]}', {"a": [1, None]}),
        ({}, "12.5", 12.5),
        ({}, '"12.5"', "12.5"),
        ({}, "NaN", "NaN"),
        ({}, "[" * 5000, "[" * 5000),
        ({"options": ["1", "true"]}, "1", "1"),
        ({"options": [1, True]}, "true", True),
        ({"schema": {"type": "object", "required": ["n"]}}, '{"n": 1}', {"n": 1}),
    ],
)
def test_a_value_is_an_option_or_json_or_text(
    wait: dict[str, Any], text: str, kept: object, cli: Cli, sync_conn: Conn
) -> None:
    _, wait_id = commands.ask(sync_conn, **wait)

    assert cli("waits", "answer", wait_id, text, "--json").json["answer"] == kept


@pytest.mark.parametrize(
    ("wait", "words", "code", "said"),
    [
        ({"options": CHOICE}, ["green"], 2, "is not one of"),
        ({"schema": {"type": "integer"}}, ["many"], 2, "does not fit the schema"),
        ({"event": "paid"}, ["yes"], 2, "is for the event 'paid'"),
        ({}, ["yes", "--actor", ""], 2, "actor"),
        ({}, [], 2, "no answer is given"),
        ({}, ["--json"], 2, "no answer is given"),
    ],
)
def test_a_wrong_answer_is_refused_and_changes_nothing(
    wait: dict[str, Any], words: list[str], code: int, said: str, cli: Cli, sync_conn: Conn
) -> None:
    task, wait_id = commands.ask(sync_conn, **wait)

    refused = cli("waits", "answer", wait_id, *words)

    assert refused.code == code
    assert said in refused.err
    assert commands.status(sync_conn, task) == "blocked"


def test_a_missing_wait_is_reported(still: Cli) -> None:
    assert still("waits", "answer", NO_WAIT, "yes").code == 3
    missing = still("waits", "answer", "0" * 12, "yes")
    assert missing.code == 3
    assert "treadle waits" in missing.err
    assert still("waits", "answer", "abc", "yes").code == 2
    assert still("waits", "--task", NO_WAIT).rows[1:] == []


def test_on_a_terminal_the_question_is_asked(database_url: str, sync_conn: Conn) -> None:
    _, wait = commands.ask(sync_conn, approvers=1, context={"sha": "4f2a"})

    shown = commands.on_terminal(
        "waits", "answer", wait, "--actor", "alice", typed="perhaps\napprove\n",
        TREADLE_DATABASE_URL=database_url, NO_COLOR="1",
    )  # fmt: skip

    assert "Ship it?" in shown
    assert '"sha": "4f2a"' in shown
    assert "[approve/reject/revise]" in shown
    assert "answered" in shown
    row = sync_conn.execute("select answer from treadle.waits where id = %s", (wait,)).fetchone()
    assert row == ("approve",)


def test_an_event_lets_every_task_continue_that_waits_for_it(cli: Cli, sync_conn: Conn) -> None:
    first, _ = commands.ask(sync_conn, event="paid", key="7")
    second, _ = commands.ask(sync_conn, event="paid", key="7")
    other, _ = commands.ask(sync_conn, event="paid", key="8")

    done = cli("events", "emit", "paid", '{"usd": 5}', "--key", "7", "--dedup-key", "once")

    assert done.code == 0
    assert commands.status(sync_conn, first) == commands.status(sync_conn, second) == "ready"
    assert commands.status(sync_conn, other) == "blocked"
    again = cli(
        "events", "emit", "paid", '{"usd": 9}', "--key", "7", "--dedup-key", "once", "--json"
    )
    assert again.json == {"id": int(done.out)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["task.done"], "is reserved for built-in events"),
        (["paid", "{"], "payload is not JSON"),
        (["paid", '{"a": NaN}'], "payload"),
        ([""], "1 to 200 bytes"),
    ],
)
def test_a_bad_event_is_refused(words: list[str], said: str, still: Cli) -> None:
    refused = still("events", "emit", *words)

    assert refused.code == 2
    assert said in refused.err


def test_show_lists_the_waits_of_a_task(cli: Cli, sync_conn: Conn) -> None:
    task, wait = commands.ask(sync_conn, options=CHOICE)

    shown = cli("tasks", "show", task, "--json").json

    assert "Ship it?" in shown["why"]
    assert [each["reason"] for each in shown["reasons"]] == ["question"]
    assert [each["id"] for each in shown["waits"]] == [wait]
    assert [each["outcome"] for each in shown["attempts"]] == ["suspended"]
