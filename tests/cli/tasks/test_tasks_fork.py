"""`treadle tasks fork`, and related tasks in `show` and `cancel`."""

import json
from typing import Any

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_TASK, Cli, Conn

DAG: dict[str, Any] = {
    "name": "page",
    "tasks": [
        {"name": "research", "type": "code", "title": "find out"},
        {"name": "write", "type": "code", "after": ["research"]},
        {"name": "print", "type": "code", "after": ["write"]},
        {"name": "post", "type": "code", "after": [{"task": "write", "optional": True}]},
    ],
}


@pytest.fixture
def written(sync_conn: Conn) -> str:
    """A task that has outlined and drafted, and was completed."""
    task = commands.enqueue(sync_conn, {"topic": "looms", "tone": "warm"})
    _, token = commands.claim(sync_conn)
    for name in ("outline", "draft"):
        sync_conn.execute(
            "select treadle.save_step(%s, %s, %s, '1', p_calls => '[{\"usd\": 0.25}]')",
            (task, token, name),
        )
    sync_conn.execute("select treadle.complete_task(%s, %s, '2')", (task, token))
    return task


@pytest.fixture
def page(sync_conn: Conn) -> dict[str, str]:
    """The ids of the tasks of a DAG, by name."""
    found = sync_conn.execute(
        "select ids from treadle.create_dag(%s)", (json.dumps(DAG),)
    ).fetchone()
    assert found is not None
    names = [str(task["name"]) for task in DAG["tasks"]]
    return dict(zip(names, map(str, found[0]), strict=True))


def test_a_fork_keeps_the_steps_before_and_changes_arguments(cli: Cli, written: str) -> None:
    made = cli(
        "tasks", "fork", written[-8:], "--from", "draft", "--set", "tone=dry", "--set", "words=300"
    ).out.strip()

    shown = cli("tasks", "show", made, "--json").json
    assert shown["spec"] == {"topic": "looms", "tone": "dry", "words": 300}
    assert shown["forked_from"] == written
    assert [(step["name"], step["cost_usd"]) for step in shown["steps"]] == [("outline", 0.0)]
    assert cli("tasks", "show", written, "--json").json["status"] == "completed"


def test_a_fork_in_json_names_its_origin(cli: Cli, written: str) -> None:
    made = cli("tasks", "fork", written, "--from", "outline", "--json").json

    assert made["forked_from"] == written
    assert cli("tasks", "show", made["id"], "--json").json["steps"] == []


def test_a_value_with_an_equals_sign_and_json_as_text_are_kept(cli: Cli, written: str) -> None:
    words = ("--set", "url=https://example.org/?a=b", "--set", 'code="7"', "--set", "empty=")
    made = cli("tasks", "fork", written, "--from", "draft", *words).out.strip()

    spec = cli("tasks", "show", made, "--json").json["spec"]
    assert (spec["url"], spec["code"], spec["empty"]) == ("https://example.org/?a=b", "7", "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--from", "publish"], 3, "Its steps: outline, draft"),
        (["--from", "draft", "--set", "tone"], 2, "is not NAME=VALUE"),
        (["--from", "draft", "--set", "=dry"], 2, "is not NAME=VALUE"),
        ([], 2, "--from"),
    ],
)
def test_a_wrong_fork_is_refused(
    words: list[str], code: int, said: str, cli: Cli, written: str
) -> None:
    refused = cli("tasks", "fork", written, *words)

    assert refused.code == code
    assert said in refused.err
    assert cli("tasks", "list", "-q").out.split() == [written]


def test_a_task_that_does_not_exist_cannot_be_forked(still: Cli) -> None:
    assert still("tasks", "fork", NO_TASK, "--from", "draft").code == 3


def test_show_lists_dependencies_with_their_status(cli: Cli, page: dict[str, str]) -> None:
    shown = cli("tasks", "show", page["write"], "--json").json

    assert shown["why"].startswith("waiting for 1 of 1 dependencies: research")
    [other] = shown["dependencies"]
    assert (other["id"], other["name"], other["status"], other["met"]) == (
        page["research"], "research", "ready", False,
    )  # fmt: skip


def test_show_lists_subtasks(cli: Cli, sync_conn: Conn) -> None:
    parent = commands.enqueue(sync_conn)
    _, token = commands.claim(sync_conn)
    row = sync_conn.execute(
        "select id from treadle.spawn_tasks(%s, %s, 'parts', %s)",
        (parent, token, json.dumps([{"type": "code", "queue": "default"}])),
    ).fetchone()
    assert row is not None
    sync_conn.execute(
        "select treadle.suspend_task(%s, %s, array[%s]::uuid[])", (parent, token, row[0])
    )

    shown = cli("tasks", "show", parent, "--json").json

    assert [each["id"] for each in shown["subtasks"]] == [str(row[0])]
    assert shown["reasons"][0]["detail"]["tasks"][0]["id"] == str(row[0])
    assert [each["kind"] for each in shown["steps"]] == ["spawn"]


def test_on_a_terminal_show_has_a_table_for_each_part(
    database_url: str, written: str, sync_conn: Conn
) -> None:
    shown = commands.on_terminal("tasks", "show", written, TREADLE_DATABASE_URL=database_url)

    assert "steps" in shown
    assert "$0.2500" in shown
    assert "outline" in shown
    assert "dependencies" not in shown

    task, _ = commands.ask(sync_conn)
    waiting = commands.on_terminal("tasks", "show", task, TREADLE_DATABASE_URL=database_url)
    assert "for an answer" in waiting
    assert "QUESTION" in waiting


def test_cancel_prints_the_number_of_dependents(cli: Cli, page: dict[str, str]) -> None:
    done = cli("tasks", "cancel", page["research"])

    assert done.code == 0
    assert done.rows[1] == [page["research"], "cancelled"]
    assert sorted(done.rows[2:]) == [[page["write"], "cascaded"], [page["print"], "cascaded"]]
    assert done.err == "and 2 dependent tasks\n"
    assert cli("tasks", "show", page["post"], "--json").json["status"] == "ready"


def test_on_a_terminal_cancel_lists_only_what_was_named(
    database_url: str, page: dict[str, str]
) -> None:
    shown = commands.on_terminal(
        "tasks", "cancel", page["write"], TREADLE_DATABASE_URL=database_url
    )

    assert "and 1 dependent task" in shown
    assert page["print"] not in shown
