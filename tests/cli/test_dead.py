"""`treadle dead`: a person decides about tasks that gave up; many at once need a yes."""

import pytest

from tests.cli import tools
from tests.cli.conftest import Cli
from tests.cli.tools import NO_TASK, Conn


def test_letters_are_listed_by_queue_type_and_class(cli: Cli, sync_conn: Conn) -> None:
    slow = tools.dead_letter(sync_conn, failure_class="timeout")
    broken = tools.dead_letter(sync_conn)

    assert cli("dead", "list", "-q").out.split() == [broken, slow]
    assert cli("dead", "list", "-q", "--class", "timeout").out.split() == [slow]
    assert cli("dead", "list", "-q", "--type", "review").out == ""
    assert cli("dead", "list", "-q", "--queue", "default", "-n", "1").out.split() == [broken]


@pytest.mark.parametrize(("verb", "after"), [("retry", "ready"), ("cancel", "cancelled")])
def test_a_decision_is_made_and_kept(verb: str, after: str, cli: Cli, sync_conn: Conn) -> None:
    task = tools.dead_letter(sync_conn)

    done = cli("dead", verb, task[-8:], "--note", "because")

    assert done.code == 0
    assert done.rows[1][:2] == [task, after]
    assert tools.status(sync_conn, task) == after
    assert cli("dead", "list", "-q").out == ""
    letter = cli("dead", "list", "--all", "--json").json["items"][0]
    assert (letter["resolution"], letter["note"]) == (verb, "because")
    assert cli("dead", "cancel", task).code == 4


def test_a_letter_is_changed_and_retried(cli: Cli, sync_conn: Conn) -> None:
    task = tools.dead_letter(sync_conn, url="old", depth=2)

    done = cli("dead", "modify", task, "--spec", '{"url": "new"}', "--priority", "5")

    assert done.code == 0
    shown = cli("tasks", "show", task, "--json").json
    assert shown["spec"] == {"url": "new", "depth": 2}
    assert (shown["status"], shown["priority"]) == ("ready", 5)


def test_a_change_without_anything_to_change_is_refused(cli: Cli, sync_conn: Conn) -> None:
    task = tools.dead_letter(sync_conn)

    assert cli("dead", "modify", task).code == 2
    assert tools.status(sync_conn, task) == "dead_lettered"


def test_all_letters_need_a_yes(cli: Cli, sync_conn: Conn) -> None:
    slow = tools.dead_letter(sync_conn, failure_class="timeout")
    broken = tools.dead_letter(sync_conn)

    asked = cli("dead", "retry", "--all")
    looked = cli("dead", "retry", "--all", "--dry-run")

    assert asked.code == 2
    assert "this would retry 2 dead letters" in asked.err
    assert "--yes" in asked.err
    assert [row[:2] for row in looked.rows[1:]] == [["1", "found"], ["1", "found"]]
    assert tools.status(sync_conn, slow) == tools.status(sync_conn, broken) == "dead_lettered"

    done = cli("dead", "retry", "--all", "--class", "timeout", "--yes")

    assert done.code == 0
    assert tools.status(sync_conn, slow) == "ready"
    assert tools.status(sync_conn, broken) == "dead_lettered"


def test_ids_and_all_do_not_go_together(cli: Cli, sync_conn: Conn) -> None:
    task = tools.dead_letter(sync_conn)

    for words in ([], [task, "--all", "--yes"], [task, "--queue", "default"]):
        assert cli("dead", "cancel", *words).code == 2
    assert tools.status(sync_conn, task) == "dead_lettered"


def test_a_task_that_never_died_is_not_found(cli: Cli, sync_conn: Conn) -> None:
    task = tools.enqueue(sync_conn)

    shown = cli("dead", "show", task)

    assert shown.code == 3
    assert "never was a dead letter; it is ready" in shown.err
    assert cli("dead", "show", NO_TASK).code == 3
