"""`treadle dead-letters`: letters by group, their history, and decisions about one or many."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_TASK, Cli, Conn

pytestmark = pytest.mark.requirement("R3")


def group_of(conn: Conn, task: str) -> str:
    found = conn.execute(
        "select fingerprint from treadle.dead_letters where task_id = %s", (task,)
    ).fetchone()
    assert found is not None
    return str(found[0])


def counts(items: list[dict[str, Any]]) -> dict[str, int]:
    return {each["verdict"]: each["letters"] for each in items}


def test_groups_are_listed_with_counts(cli: Cli, sync_conn: Conn) -> None:
    tasks = [commands.dead_letter(sync_conn, f"no order {n}") for n in range(3)]
    commands.dead_letter(sync_conn, "late", "timeout")

    header, first, second = cli("dead-letters", "groups").rows

    assert header[:4] == ["letters", "group", "failure_class", "types"]
    assert first[:4] == ["3", group_of(sync_conn, tasks[0]), "error", "code"]
    assert first[header.index("error")] == "no order <n>"
    assert first[header.index("example")] == tasks[2]
    assert second[:1] + second[2:4] == ["1", "timeout", "code"]


def test_an_empty_list_prints_a_message(cli: Cli) -> None:
    done = cli("dead-letters", "groups")

    assert (done.code, done.err.splitlines()[-1]) == (0, "no dead letters")


def test_letters_are_listed_by_group_age_and_poison_and_the_escalated_first(
    cli: Cli, sync_conn: Conn
) -> None:
    old, poison, new = (commands.dead_letter(sync_conn, f"no order {n}") for n in range(3))
    other = commands.dead_letter(sync_conn, "other")
    change = "update treadle.dead_letters set {} where task_id = %s"
    aged = "dead_lettered_at = dead_lettered_at - interval '3 hours'"
    sync_conn.execute(change.format(aged).encode(), (old,))
    sync_conn.execute(change.format("poison_pill = true").encode(), (poison,))

    def listed(*words: str) -> list[str]:
        return cli("dead-letters", "list", "-q", *words).out.split()

    assert listed("--group", group_of(sync_conn, new)) == [new, poison, old]
    assert listed("--older-than", "2h") == [old]
    assert listed("--poison") == [poison]
    assert listed("--no-poison", "--not-escalated") == [other, new, old]
    assert cli("dead-letters", "escalate", old, "--to", "ops").code == 0
    assert listed() == [old, other, new, poison]
    assert listed("--escalated") == [old]


@pytest.mark.requirement("F15")
def test_show_has_the_whole_history_with_agent_duration_cost_and_decisions(
    cli: Cli, sync_conn: Conn, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    task = commands.enqueue(sync_conn, retry={"strategy": "immediate", "poison": False})
    for number, agent in enumerate(("a1", "b2", "a1"), start=1):
        found, token = commands.claim(sync_conn, agent)
        sync_conn.execute("update treadle.tasks set cost_usd = cost_usd + 0.25")
        sync_conn.execute(
            "select treadle.fail_tasks(array[%s], array[%s], array['error'], array[%s])",
            (found, token, f"ValueError: no order {number}"),
        )
    assert cli("dead-letters", "escalate", task, "--to", "ops", "--reason", "new key?").code == 0

    shown = cli("dead-letters", "show", task[-8:], "--json").json

    assert [each["agent"] for each in shown["history"]] == ["a1", "b2", "a1"]
    assert [each["cost_usd"] for each in shown["history"]] == [0.25] * 3
    assert all(each["duration_s"] >= 0 for each in shown["history"])
    assert (shown["total_cost_usd"], shown["escalated_to"]) == (0.75, "ops")
    [kept] = shown["decisions"]
    assert (kept["decision"], kept["note"]) == ("escalate", "new key?")
    assert cli("dead-letters", "show", shown["id"], "--json").json["task_id"] == task

    screen = commands.on_terminal("dead-letters", "show", task, TREADLE_DATABASE_URL=database_url)
    for words in (
        "a1",
        "b2",
        "$0.2500",
        "total cost $0.7500",
        "escalated to: ops",
        "new key?",
        "no order 3",
    ):
        assert words in screen


def test_a_group_is_counted_and_then_resolved_with_reviewer_and_note(
    cli: Cli, sync_conn: Conn
) -> None:
    tasks = [commands.dead_letter(sync_conn, f"no order {n}") for n in range(3)]
    other = commands.dead_letter(sync_conn, "other")
    words = ("dead-letters", "retry", "--group", group_of(sync_conn, tasks[0]))

    looked = cli(*words, "--dry-run", "--json")
    assert counts(looked.json["items"]) == {"found": 3}
    assert {commands.status(sync_conn, each) for each in tasks} == {"dead_lettered"}
    done = cli(*words, "--reason", "it is back", "--actor", "ada", "--json")

    assert (done.code, counts(done.json["items"])) == (0, {"retried": 3})
    assert {commands.status(sync_conn, each) for each in tasks} == {"ready"}
    assert commands.status(sync_conn, other) == "dead_lettered"
    log = cli("dead-letters", "log", "--json").json["items"]
    assert [(each["actor"], each["note"], each["decision"]) for each in log] == [
        ("ada", "it is back", "retry")
    ] * 3


def test_more_than_a_hundred_need_a_yes(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute(
        "select treadle.enqueue_batch('default', 'code', array_fill('{}'::jsonb, array[101]))"
    )
    sync_conn.execute("select treadle.register_agent('a1')")
    sync_conn.execute(
        """
        select treadle.fail_tasks(
          array_agg(id), array_agg(claim_token), array_fill('error'::text, array[101]),
          array_fill('boom'::text, array[101]), array_fill('fail'::text, array[101])
        )
        from treadle.claim_tasks('a1', p_limit => 200)
        """
    )

    asked = cli("dead-letters", "cancel", "--failure-class", "error")
    assert asked.code == 2
    assert "this would cancel 101 dead letters" in asked.err
    done = cli("dead-letters", "cancel", "--failure-class", "error", "--yes", "--json")

    assert counts(done.json["items"]) == {"cancelled": 101}


def test_a_retry_may_wait(cli: Cli, sync_conn: Conn) -> None:
    one, two = commands.dead_letter(sync_conn), commands.dead_letter(sync_conn)

    assert cli("dead-letters", "retry", one, "--run-at", "2h").rows[1][:3] == [
        one,
        "pending",
        "retried",
    ]
    assert cli("dead-letters", "retry", two, "--run-at", "2099-01-01T00:00+00:00").code == 2
    waits = sync_conn.execute(
        "select run_at - now() from treadle.tasks where id = %s", (one,)
    ).fetchone()

    assert waits is not None
    assert 7000 < waits[0].total_seconds() <= 7200
    assert commands.status(sync_conn, two) == "dead_lettered"


@pytest.mark.requirement("F16")
def test_values_are_set_by_path_and_from_a_file(cli: Cli, sync_conn: Conn, folder: Path) -> None:
    task = commands.dead_letter(sync_conn, url="old", options={"depth": 2, "deep": {"x": 1}})
    (folder / "spec.json").write_text(json.dumps({"url": "new"}))

    done = cli(
        *("dead-letters", "modify", task, "--spec", "@spec.json", "--set", "options.depth=5"),
        *("--set", "options.name=a b", "--unset", "options.deep"),
    )

    assert (done.code, commands.status(sync_conn, task)) == (0, "ready")
    assert cli("tasks", "show", task, "--json").json["spec"] == {
        "url": "new",
        "options": {"depth": 5, "name": "a b"},
    }


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--set", "url.x=1"], 4, "the spec has no path url.x"),
        (["--set", "nothing"], 2, "is not NAME=VALUE"),
        (["--spec", "[1]"], 2, "spec must be a JSON object"),
        (["--spec", "@none.json"], 2, "cannot be read"),
        (["--move-to", "mial"], 4, "there is no queue 'mial'"),
        (["--priority", "101"], 2, "priority"),
        ([], 2, "no change is given"),
    ],
)
def test_a_bad_edit_changes_nothing(
    words: list[str], code: int, said: str, cli: Cli, sync_conn: Conn
) -> None:
    task = commands.dead_letter(sync_conn, url="old")

    refused = cli("dead-letters", "modify", task, *words)

    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert commands.status(sync_conn, task) == "dead_lettered"
    assert cli("dead-letters", "log", "--json").json["items"] == []


def test_of_several_ids_those_that_cannot_be_decided_are_named(cli: Cli, sync_conn: Conn) -> None:
    one, two = commands.dead_letter(sync_conn), commands.dead_letter(sync_conn)
    assert cli("dead-letters", "cancel", one, "--actor", "ada").code == 0

    done = cli("dead-letters", "retry", one, two, NO_TASK, "ffffffff", "--json")

    rows = {each["id"]: each for each in done.json["items"]}
    assert done.code == 4
    assert rows[two]["verdict"] == "retried"
    assert (rows[one]["verdict"], rows[one]["now"]) == ("already", "cancelled")
    assert "ada decided cancel at" in rows[one]["problem"]
    assert [rows[each]["verdict"] for each in (NO_TASK, "ffffffff")] == ["unknown", "unknown"]
    assert "3 of 4 dead letters were not changed" in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["retry"], 2, "select dead letters either by id"),
        (["retry", "9f3a21c4", "--group", "x"], 2, "either by id, or by filters"),
        (["cancel", "9f3a21c4", "--dry-run"], 2, "--dry-run needs filters"),
        (["cancel", "--older-than", "soon"], 2, "soon"),
        (["cancel", "--queue", "mial"], 3, "there is no queue 'mial'"),
        (["escalate", "9f3a21c4"], 2, "--to"),
        (["escalate", "--all", "--to", " "], 2, "to must be a name"),
        (["retry", NO_TASK], 3, "there is no dead letter"),
        (["retry", "9f3a21c4"], 3, "no dead letter has an id"),
        (["retry", "xyz"], 2, "is not a valid task id"),
        (["list", "--older-than", "soon"], 2, "soon"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], code: int, said: str, still: Cli) -> None:
    refused = still("dead-letters", *words)

    assert (refused.code, said in refused.err) == (code, True), refused.err


def test_on_a_terminal_many_decisions_show_how_far_they_are(
    database_url: str, sync_conn: Conn
) -> None:
    for n in range(3):
        commands.dead_letter(sync_conn, f"no order {n}")

    shown = commands.on_terminal(
        "dead-letters", "retry", "--failure-class", "error", TREADLE_DATABASE_URL=database_url
    )

    assert "3/3" in shown
    assert "retried" in shown
