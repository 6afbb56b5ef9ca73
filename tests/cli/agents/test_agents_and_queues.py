"""`treadle agents` and `treadle queues`: agents, their tasks, and stuck tasks."""

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn


@pytest.mark.parametrize(
    ("verb", "status"), [("drain", "draining"), ("offline", "offline"), ("activate", "active")]
)
def test_the_status_of_an_agent_is_set(verb: str, status: str, cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("select treadle.register_agent('host-3')")

    done = cli("agents", verb, "host-3")

    assert done.code == 0
    assert done.err == f"agent host-3 is {status}\n"
    [agent] = cli("agents", "list", "--all", "--json").json["items"]
    assert agent["status"] == status


def test_an_unknown_agent_is_not_found(still: Cli) -> None:
    assert still("agents", "drain", "nobody").code == 3


def test_offline_agents_are_listed_on_request(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("select treadle.register_agent('here'), treadle.register_agent('gone')")
    sync_conn.execute("select treadle.set_agent_status('gone', 'offline')")

    assert [row[0] for row in cli("agents", "list").rows[1:]] == ["here"]
    assert {row[0] for row in cli("agents", "list", "--all").rows[1:]} == {"here", "gone"}


def test_a_queue_is_paused_and_resumed(cli: Cli, sync_conn: Conn) -> None:
    commands.enqueue(sync_conn)

    assert cli("queues", "pause", "default", "--reason", "storm").code == 0
    [queue] = cli("queues", "list", "--json").json["items"]
    assert (queue["paused"], queue["ready"]) == (True, 1)
    [stuck] = cli("queues", "stuck", "--json").json["items"]
    assert stuck["reason"].startswith("queue default has been paused by ")
    assert stuck["reason"].endswith(": storm")

    assert cli("queues", "resume", "default").code == 0
    [queue] = cli("queues", "list", "--json").json["items"]
    assert queue["paused"] is False
    assert cli("queues", "pause", "nowhere").code == 3


def test_a_queue_is_defined_and_changed(cli: Cli) -> None:
    made = cli("queues", "create", "night", "--priority", "80", "--max-attempts", "5")
    changed = cli("queues", "update", "night", "--retry", '{"strategy": "fixed"}')

    assert made.code == changed.code == 0
    task = cli("tasks", "enqueue", "code", "--queue", "night").out.strip()
    shown = cli("tasks", "show", task, "--json").json
    assert (shown["priority"], shown["max_attempts"]) == (80, 5)
    assert shown["retry"]["strategy"] == "fixed"


@pytest.mark.parametrize(
    "arguments",
    [["Bad Name"], ["night", "--priority", "101"], ["night", "--retry", '{"strategy": "never"}'],
     ["night", "--audit", "loud"], ["night", "--retry", "fixed"]],
)  # fmt: skip
def test_a_queue_that_cannot_be_is_refused(arguments: list[str], still: Cli) -> None:
    assert still("queues", "create", *arguments).code == 2
    [queue] = still("queues", "list", "--json").json["items"]
    assert queue["queue"] == "default"


def test_nothing_stuck_is_said_on_stderr(still: Cli) -> None:
    shown = still("queues", "stuck")

    assert len(shown.rows) == 1
    assert shown.err == "no task is stuck\n"
