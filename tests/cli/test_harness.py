"""`treadle harness`: list actions, and decide about open ones."""

from uuid import uuid4

import pytest

from tests.drivers.commands import Cli, Conn

AGENT = "http://localhost:9000"


def decided(conn: Conn) -> str:
    """A task with a decision that the harness has taken, and not finished."""
    token = uuid4()
    row = conn.execute("select id from treadle.enqueue_harness_task(%s, '{}')", (AGENT,)).fetchone()
    assert row is not None
    conn.execute("select treadle.claim_harness_task(%s, %s)", (AGENT, token))
    conn.execute("""select treadle.complete_harness_task(%s, %s, '{"do": 1}')""", (row[0], token))
    conn.execute("select treadle.take_actions(%s)", (uuid4(),))
    return str(row[0])


def gone(conn: Conn) -> None:
    """The harness of the action has died."""
    query = "update treadle.harness_actions set lease_until = lease_until - interval '1 hour'"
    conn.execute(query)


@pytest.mark.requirement("H6")
def test_an_interrupted_action_is_listed_and_executed_again(cli: Cli, sync_conn: Conn) -> None:
    task = decided(sync_conn)
    assert "is executing" in cli("harness", "retry", task).err
    gone(sync_conn)

    [shown] = cli("harness", "list", "--status", "interrupted", "--json").json["items"]
    assert (shown["task_id"], shown["agent_url"]) == (task, AGENT)
    assert "interrupted" in cli("harness", "list").out
    again = cli("harness", "retry", task[-8:], "--reason", "nothing posted", "--json")
    assert again.json == {"task_id": task, "status": "waiting"}

    [shown] = cli("harness", "list", "--json").json["items"]
    assert shown["action"] == "waiting"
    assert cli("harness", "list", "--status", "interrupted", "--json").json["items"] == []


def test_an_interrupted_action_is_left_as_it_is(cli: Cli, sync_conn: Conn) -> None:
    task = decided(sync_conn)
    gone(sync_conn)

    skipped = cli("harness", "skip", task, "--reason", "it was posted", "--json")
    assert skipped.json == {"task_id": task, "status": "skipped"}

    [shown] = cli("harness", "list", "--json").json["items"]
    assert (shown["status"], shown["action"]) == ("done", "skipped")
    again = cli("harness", "retry", task)
    assert (again.code, "is skipped" in again.err) == (4, True)


@pytest.mark.requirement("H4")
def test_a_task_that_failed_is_brought_back_to_its_agent(cli: Cli, sync_conn: Conn) -> None:
    token = uuid4()
    row = sync_conn.execute(
        "select id from treadle.enqueue_harness_task(%s, '{}')", (AGENT,)
    ).fetchone()
    assert row is not None
    claim = "select id, retry_count from treadle.claim_harness_task(%s, %s)"
    sync_conn.execute(claim, (AGENT, token))
    sync_conn.execute("select treadle.fail_task(%s, %s, 'no', 'error', 'fail')", (row[0], token))
    found = "select status from treadle.harness_tasks"
    assert sync_conn.execute(found).fetchone() == ("failed",)

    assert cli("dead-letters", "retry", str(row[0]), "--reason", "mended").code == 0

    assert sync_conn.execute(found).fetchone() == ("pending",)
    assert sync_conn.execute(claim, ("http://other:9000", uuid4())).fetchone() is None
    again = sync_conn.execute(claim, (AGENT, uuid4())).fetchone()
    assert again == (row[0], 1)


def test_agents_are_nudged_if_an_operator_allows_it(cli: Cli) -> None:
    assert cli("harness", "allow", AGENT, "--allow-private").code == 0
    [shown] = cli("harness", "agents", "--json").json["items"]
    assert (shown["agent_url"], shown["allow_private"]) == (AGENT, True)
    assert AGENT in cli("harness", "agents").out

    assert cli("harness", "forbid", AGENT).code == 0
    assert cli("harness", "agents", "--json").json["items"] == []
    assert cli("harness", "allow", "no address").code == 2


@pytest.mark.parametrize("host", ["127.0.0.1:19100", "localhost:9000", "[::1]:9000", "10.0.0.7"])
def test_a_private_address_is_refused_at_once_unless_it_is_allowed(cli: Cli, host: str) -> None:
    wrong = cli("harness", "allow", f"http://{host}")

    assert wrong.code == 2
    assert "is a private address" in wrong.err
    assert "Allow private addresses: --allow-private" in wrong.err
    assert cli("harness", "agents", "--json").json["items"] == []
    assert cli("harness", "allow", f"http://{host}", "--allow-private").code == 0
    assert cli("harness", "allow", "https://agent-1.example.org").code == 0


def test_a_callback_in_a_missing_module_is_refused(bare: Cli) -> None:
    wrong = bare("harness", "run", "nowhere:act")

    assert wrong.code == 2
    assert "no module 'nowhere'" in wrong.err


def test_a_command_with_a_typo_is_refused(cli: Cli) -> None:
    wrong = cli("harness", "rerty", "0198f3c2")

    assert wrong.code == 2
    assert "Did you mean 'retry'?" in wrong.err
