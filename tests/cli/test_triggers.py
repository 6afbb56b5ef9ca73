"""`treadle triggers` and `treadle events`."""

import json

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn

TASK = '{"type": "review", "spec": {"n": {"$event": "data.n"}}}'


def fire(conn: Conn) -> None:
    conn.execute("select treadle.fire_triggers()")


@pytest.mark.requirement("F18")
def test_a_trigger_is_set_tested_fired_and_shown(cli: Cli, sync_conn: Conn) -> None:
    made = cli(
        "triggers", "create", "next", "--on", "paid", "--filter", '{"key": "a"}', "--task", TASK
    )
    assert (made.code, made.err) == (
        0,
        "trigger next is created: it enqueues task review on paid\n",
    )
    event = cli("events", "emit", "paid", '{"n": 7}', "--key", "a").out.strip()
    bad = cli("events", "emit", "paid", "--key", "a").out.strip()

    tried = cli("triggers", "test", "next", "--event", event)
    assert tried.code == 0
    assert '"n": 7' in tried.out
    tried = cli("triggers", "test", "next", "--event", bad)
    assert (tried.code, tried.out) == (1, "does not fire\tthe event has no data.n\n")
    sample = json.dumps({"kind": "paid", "key": "a", "data": {"n": 1}})
    assert cli("triggers", "test", "next", "--sample", sample, "--json").json["fires"] is True

    fire(sync_conn)
    shown = cli("triggers", "show", "next", "--json").json
    assert (shown["fired"], shown["failed"]) == (1, 1)
    assert [each["verdict"] for each in shown["log"]] == ["failed", "fired"]
    assert "the event has no data.n" in cli("triggers", "show", "next").out

    assert cli("triggers", "update", "next", "--task", '{"type": "review"}').code == 0
    task = cli("triggers", "fire", "next", bad).out.strip()
    assert commands.status(sync_conn, task) == "ready"
    assert cli("triggers", "fire", "next", bad).code == 2


def test_a_trigger_is_listed_paused_resumed_and_removed(cli: Cli) -> None:
    assert cli("triggers").rows[1:] == []
    done = cli(
        *("triggers", "create", "failing", "--task", '{"type": "review"}', "--max-per-hour", "0"),
        *("--failure-rate", '{"type": "code", "window_s": 600, "limit": 0.5}', "--max-depth", "2"),
        *("--description", "look at it", "--actor", "me", "--json"),
    )
    row = done.json
    assert (row["on_event"], row["filter"]) == ("type.failure_rate_exceeded", {"key": "failing"})
    assert (row["max_per_hour"], row["max_depth"], row["created_by"]) == (None, 2, "me")

    assert cli("triggers", "pause", "failing", "--reason", "a storm").code == 0
    [row] = cli("triggers", "list", "--json").json["items"]
    assert (row["state"], row["paused_reason"]) == ("paused", "a storm")
    assert cli("triggers", "resume", "failing").err == "trigger failing is resumed\n"
    row = cli("triggers", "list").rows[1]
    assert row[:3] == ["failing", "active", "type.failure_rate_exceeded"]
    assert cli("triggers", "delete", "failing").code == 2
    assert cli("triggers", "delete", "failing", "--yes").code == 0
    assert cli("triggers", "show", "failing").code == 3


@pytest.mark.requirement("F23")
def test_events_are_listed_and_followed(cli: Cli, sync_conn: Conn) -> None:
    task = commands.dead_letter(sync_conn)
    cli("events", "emit", "paid", '{"n": 1}', "--key", "a")
    cli("events", "emit", "lost", '{"n": "\\u001b[31m"}')

    kinds = [row["kind"] for row in cli("events", "list", "--json").json["items"]]
    assert kinds[:3] == ["lost", "paid", "task.dead_lettered"]
    [row] = cli("events", "list", "--task", task, "--json").json["items"]
    assert row["data"]["reason"] == "boom"
    assert cli("events", "list", "--kind", "paid").rows[1][2:4] == ["paid", "a"]

    done = cli("events", "tail", "--after", "0.0", "-k", "paid", "-k", "lost", "-n", "2", "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert (first["kind"], first["data"], second["kind"]) == ("paid", {"n": 1}, "lost")
    rest = cli("events", "tail", "--after", first["place"], "-n", "1")
    assert "lost" in rest.out
    assert "\x1b" not in rest.out


@pytest.mark.requirement("F28")
def test_completed_tasks_are_followed_too(cli: Cli, sync_conn: Conn) -> None:
    commands.complete(sync_conn, "before")
    followed = [str(commands.complete(sync_conn, number)) for number in range(2)]
    sync_conn.execute(
        "update treadle.tasks set completed_at = completed_at + interval '1 hour' "
        "where output in ('0', '1')"
    )

    for words in (("tail",), ("--follow",)):
        rows = cli("events", *words, "-n", "2").rows

        assert [row[2:4] for row in rows] == [["task.completed", each] for each in followed]
        assert '"type": "code"' in rows[0][4]
    assert cli("events", "--follow", "--task", followed[0]).code == 2


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["triggers", "show", "nobody"], 3, "treadle triggers"),
        (["triggers", "pause", "nobody"], 3, "there is no trigger"),
        (["triggers", "create", "x", "--on", "paid"], 2, "a task or a dag"),
        (
            ["triggers", "create", "x", "--on", "paid", "--task", '{"type": "cod"}'],
            3,
            "Did you mean 'code'?",
        ),
        (["triggers", "create", "x", "--on", "paid", "--task", "{"], 2, "is not JSON"),
        (
            ["triggers", "create", "x", "--on", "trigger.defined", "--task", TASK],
            2,
            "triggers cannot fire on events of triggers",
        ),
        (["triggers", "test", "x"], 2, "pass either --event or --sample"),
        (["triggers", "fire", "nobody", "1"], 3, "there is no trigger"),
        (["triggers", "puase", "x"], 2, "pause"),
        (["events", "tail", "--after", "x"], 2, "is not a valid event cursor"),
        (["events", "list", "--task", "zzz"], 2, "is not a valid task id"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    still: Cli, words: list[str], code: int, hint: str
) -> None:
    done = still(*words)

    assert done.code == code, done.err
    assert hint in done.err
    assert "Traceback" not in done.err
