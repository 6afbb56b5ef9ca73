"""`treadle agents create`: create, list and delete the agents that tasks are sent to."""

import pytest

from tests.drivers.commands import Cli, Conn


@pytest.mark.requirement("Q6")
def test_an_agent_is_added_listed_changed_and_removed(cli: Cli, sync_conn: Conn) -> None:
    added = cli("agents", "create", "coder-2", "--url", "http://10.0.0.7:9000/", "--allow-private")
    assert added.code == 0
    assert cli("agents", "create", "coder-1", "--url", "https://coder-1.example.org").code == 0
    sync_conn.execute("""select treadle.submit_push('{"prompt": "hello"}', 'cli')""")
    sync_conn.execute(
        "select treadle.dispatch_task('coder-2', gen_random_uuid(), gen_random_uuid())"
    )

    first, second = cli("agents", "list", "--push", "--json").json["items"]

    assert (first["agent_id"], first["queue_id"]) == ("coder-1", None)
    assert (second["agent_id"], second["url"]) == ("coder-2", "http://10.0.0.7:9000")
    assert second["queue_id"].startswith("queue-")
    assert [row[0] for row in cli("agents", "list", "--push").rows[1:]] == ["coder-1", "coder-2"]
    assert cli("agents", "update", "coder-1", "--url", "https://other.example.org").code == 0
    assert (
        cli("agents", "list", "--push", "--json").json["items"][0]["url"]
        == "https://other.example.org"
    )
    assert cli("agents", "delete", "coder-1", "--yes").code == 0
    assert len(cli("agents", "list", "--push", "--json").json["items"]) == 1
    assert cli("agents", "delete", "coder-1", "--yes").code == 3


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000", "http://localhost:9000", "https://[fd00::1]/", "http://10.1.1.1"],
)
def test_a_private_address_needs_permission_at_once(cli: Cli, url: str) -> None:
    refused = cli("agents", "create", "coder-1", "--url", url)

    assert refused.code == 2
    assert "--allow-private" in refused.err
    assert cli("agents", "list", "--push", "--json").json["items"] == []
    assert cli("agents", "create", "coder-1", "--url", url, "--allow-private").code == 0


def test_an_address_that_is_none_is_refused(cli: Cli) -> None:
    assert cli("agents", "create", "coder-1", "--url", "coder-1:9000").code == 2
