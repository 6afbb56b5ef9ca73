"""`treadle queues show`: a queue's settings, and its tasks in the order of claims."""

import pytest

from tests.drivers import commands
from tests.drivers.commands import TIME, Cli, Conn

pytestmark = pytest.mark.requirement("F7")


@pytest.fixture
def line(sync_conn: Conn) -> list[str]:
    """Three tasks in claim order; no agent can claim the last one."""
    sync_conn.execute("select treadle.register_agent('a1')")
    last = commands.enqueue(sync_conn, priority=1, capabilities=["gpu"])
    second, first = (commands.enqueue(sync_conn, priority=given) for given in (60, 20))
    return [first, second, last]


def test_tasks_come_in_the_order_of_claims(cli: Cli, line: list[str], sync_conn: Conn) -> None:
    shown = cli("queues", "show", "default", "--json").json

    assert [each["id"] for each in shown["tasks"]] == line
    assert [each["place"] for each in shown["tasks"]] == [1, 2, 3]
    assert shown["tasks"][0]["closed_reason"] is None
    assert shown["tasks"][2]["closed_reason"] == "no live agent of the queue has capability gpu"
    assert TIME.fullmatch(shown["tasks"][0]["since"])
    assert commands.claim(sync_conn)[0].hex == line[0].replace("-", "")


def test_settings_are_shown_with_the_tasks(cli: Cli, line: list[str]) -> None:
    cli("queues", "update", "default", "--max-attempts", "5")
    cli("queues", "pause", "default", "--reason", "storm")

    shown = cli("queues", "show", "default", "-n", "1")

    assert shown.code == 0
    assert ["max_attempts", "5"] in shown.rows
    assert ["paused_reason", "storm"] in shown.rows
    at = next(n for n, row in enumerate(shown.rows) if row[0] == "position")
    assert len(shown.rows[at + 1 :]) == 1


def test_settings_are_json_too(still: Cli) -> None:
    shown = still("queues", "show", "default", "--json").json

    assert (shown["queue"], shown["paused"], shown["tasks"]) == ("default", False, [])


def test_an_empty_list_prints_a_message_on_stderr(still: Cli) -> None:
    assert still("queues", "show", "default").err.endswith("no task in queue default is ready\n")


def test_a_queue_that_does_not_exist_is_not_found(still: Cli) -> None:
    assert still("queues", "show", "nowhere").code == 3
    assert still("queues", "show", "default", "-n", "0").code == 2


def test_an_unused_queue_is_deleted(cli: Cli) -> None:
    cli("queues", "create", "night")

    assert cli("queues", "delete", "night", "--yes").code == 0
    assert cli("queues", "delete", "night", "--yes").code == 3
    assert cli("queues", "delete", "default", "--yes").code == 2


def test_a_queue_with_tasks_is_not_deleted(cli: Cli, sync_conn: Conn) -> None:
    cli("queues", "create", "night")
    sync_conn.execute("select treadle.enqueue_task('night', 'code')")

    refused = cli("queues", "delete", "night", "--yes")

    assert refused.code == 4
    assert "it has tasks" in refused.err
