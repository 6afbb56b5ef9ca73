"""`treadle dead-letters`: a person resolves dead letters; many at once need a confirmation."""

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_TASK, Cli, Conn


def test_letters_are_listed_by_queue_type_and_class(cli: Cli, sync_conn: Conn) -> None:
    slow = commands.dead_letter(sync_conn, failure_class="timeout")
    broken = commands.dead_letter(sync_conn)

    assert cli("dead-letters", "list", "-q").out.split() == [broken, slow]
    assert cli("dead-letters", "list", "-q", "--failure-class", "timeout").out.split() == [slow]
    assert cli("dead-letters", "list", "-q", "--type", "review").out == ""
    assert cli("dead-letters", "list", "-q", "--queue", "default", "-n", "1").out.split() == [
        broken
    ]


@pytest.mark.parametrize(("verb", "after"), [("retry", "ready"), ("cancel", "cancelled")])
def test_a_decision_is_made_and_kept(verb: str, after: str, cli: Cli, sync_conn: Conn) -> None:
    task = commands.dead_letter(sync_conn)

    done = cli("dead-letters", verb, task[-8:], "--reason", "because")

    assert done.code == 0
    assert done.rows[1][:2] == [task, after]
    assert commands.status(sync_conn, task) == after
    assert cli("dead-letters", "list", "-q").out == ""
    letter = cli("dead-letters", "list", "--all", "--json").json["items"][0]
    assert (letter["resolution"], letter["note"]) == (verb, "because")
    assert cli("dead-letters", "cancel", task).code == 4


def test_a_letter_is_changed_and_retried(cli: Cli, sync_conn: Conn) -> None:
    task = commands.dead_letter(sync_conn, url="old", depth=2)

    done = cli("dead-letters", "modify", task, "--spec", '{"url": "new"}', "--priority", "5")

    assert done.code == 0
    shown = cli("tasks", "show", task, "--json").json
    assert shown["spec"] == {"url": "new", "depth": 2}
    assert (shown["status"], shown["priority"]) == ("ready", 5)


def test_a_change_without_anything_to_change_is_refused(cli: Cli, sync_conn: Conn) -> None:
    task = commands.dead_letter(sync_conn)

    assert cli("dead-letters", "modify", task).code == 2
    assert commands.status(sync_conn, task) == "dead_lettered"


def test_all_letters_need_a_yes(cli: Cli, sync_conn: Conn) -> None:
    slow = commands.dead_letter(sync_conn, failure_class="timeout")
    broken = commands.dead_letter(sync_conn)

    asked = cli("dead-letters", "retry", "--all")
    looked = cli("dead-letters", "retry", "--all", "--dry-run")

    assert asked.code == 2
    assert "this would retry 2 dead letters" in asked.err
    assert "--yes" in asked.err
    assert [row[:2] for row in looked.rows[1:]] == [["1", "found"], ["1", "found"]]
    assert commands.status(sync_conn, slow) == commands.status(sync_conn, broken) == "dead_lettered"

    done = cli("dead-letters", "retry", "--all", "--failure-class", "timeout", "--yes")

    assert done.code == 0
    assert commands.status(sync_conn, slow) == "ready"
    assert commands.status(sync_conn, broken) == "dead_lettered"


def test_ids_and_all_do_not_go_together(cli: Cli, sync_conn: Conn) -> None:
    task = commands.dead_letter(sync_conn)

    for words in ([], [task, "--all", "--yes"], [task, "--queue", "default"]):
        assert cli("dead-letters", "cancel", *words).code == 2
    assert commands.status(sync_conn, task) == "dead_lettered"


def test_a_task_that_never_died_is_not_found(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn)

    shown = cli("dead-letters", "show", task)

    assert shown.code == 3
    assert "is not a dead letter; it is ready" in shown.err
    assert cli("dead-letters", "show", NO_TASK).code == 3
