"""`treadle webhooks`: create, test, change and delete webhooks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.commands import Cli, Conn
from tests.drivers.webhooks import Receiver

URL = "https://example.org/s3cr3t"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.requirement("F23")
def test_a_webhook_is_added_and_its_secret_shown_once(cli: Cli) -> None:
    added = cli("webhooks", "create", "ops", URL, "-k", "task.dead_lettered", "-k", "dag.*")
    assert added.code == 0
    [(word, secret)] = added.rows
    assert word == "secret"
    assert secret.startswith("whsec_")
    assert "not shown again" in added.err

    for words in (["list"], ["show", "ops"], ["deliveries"], ["list", "--json"]):
        shown = cli("webhooks", *words)
        assert shown.code == 0
        assert secret not in shown.out + shown.err
        assert "s3cr3t" not in shown.out + shown.err
    [found] = cli("webhooks", "--json").json["items"]
    assert (found["name"], found["status"]) == ("ops", "active")
    assert found["kinds"] == ["task.dead_lettered", "dag.*"]
    assert cli("webhooks", "update", "ops", "--kind", "dag.*").out == ""


def test_a_webhook_is_paused_resumed_rotated_and_removed(cli: Cli) -> None:
    secret = cli("webhooks", "create", "ops", URL, "--json").json["secret"]

    assert cli("webhooks", "pause", "ops", "--reason", "a move").code == 0
    paused = cli("webhooks", "show", "ops", "--json").json
    assert (paused["status"], paused["reason"]) == ("paused", "a move")
    assert cli("webhooks", "resume", "ops").code == 0
    assert cli("webhooks", "show", "ops", "--json").json["status"] == "active"
    rotated = cli("webhooks", "rotate", "ops", "--grace", "60", "--json").json["secret"]
    assert rotated.startswith("whsec_")
    assert rotated != secret
    assert cli("webhooks", "show", "ops", "--json").json["rotated_until"] is not None
    refused = cli("webhooks", "delete", "ops")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert cli("webhooks", "delete", "ops", "--yes").code == 0
    assert cli("webhooks", "list", "--json").json["items"] == []


def test_a_secret_of_ones_own_and_an_address_from_stdin_are_not_repeated(
    cli: Cli, folder: Path
) -> None:
    secret = "whsec_" + "QUJD" * 11
    (folder / "secret").write_text(f"{secret}\n")

    added = cli("webhooks", "create", "ops", "-", "--secret-file", "secret", stdin=f"{URL}\n")

    assert added.code == 0
    assert secret not in added.out + added.err
    assert cli("webhooks", "show", "ops", "--json").json["address"] == "https://example.org"


@pytest.mark.requirement("F23")
def test_a_test_is_sent_at_once_and_its_answer_shown(cli: Cli, receiver: Receiver) -> None:
    cli("webhooks", "create", "ops", receiver.url("ops"), "--allow-private")
    allowed = {"TREADLE_WEBHOOK_PRIVATE": "1"}

    refused = cli("webhooks", "test", "ops")
    fine = cli("webhooks", "test", "ops", "--json", env=allowed)
    receiver.modes["ops"] = 500
    bad = cli("webhooks", "test", "ops", env=allowed)

    assert refused.code == 1
    assert "TREADLE_WEBHOOK_PRIVATE" in refused.out
    assert fine.code == 0
    assert fine.json["delivered"] is True
    assert (fine.json["status"], fine.json["body"]) == (200, "thanks")
    [message] = receiver.got["/ops"]
    assert json.loads(message.body)["type"] == "webhook.test"
    assert message.headers["webhook-signature"].startswith("v1,")
    assert bad.code == 1
    assert ["error", "answered 500"] in bad.rows


def test_the_last_tries_are_listed(cli: Cli, sync_conn: Conn) -> None:
    cli("webhooks", "create", "ops", URL)
    sync_conn.execute("select treadle.record_delivery('ops', 1, 503, 'answered 503', 17)")
    sync_conn.commit()

    [row] = cli("webhooks", "deliveries", "ops", "--json").json["items"]

    assert (row["status"], row["error"], row["ms"]) == (503, "answered 503", 17)
    assert cli("webhooks", "deliveries", "nobody").code == 3


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "x", "ftp://example.org"], 2, "https://"),
        (["create", "x", URL, "--filter", "[1]"], 2, "JSON object"),
        (["create", "x", URL, "--secret-file", "missing"], 2, "cannot be read"),
        (["show", "x"], 3, "no webhook"),
        (["pause", "x"], 3, "no webhook"),
        (["test", "x"], 3, "no webhook"),
    ],
)
def test_an_invalid_option_is_reported(cli: Cli, words: list[str], code: int, said: str) -> None:
    done = cli("webhooks", *words)

    assert done.code == code
    assert re.search(said, done.err)


def test_a_redis_stream_needs_no_secret(cli: Cli) -> None:
    added = cli("webhooks", "create", "feed", "redis://:pw@cache.example.org", "--stream", "events")

    assert (added.code, added.out) == (0, "")
    [feed] = cli("webhooks", "--json").json["items"]
    assert (feed["format"], feed["stream"]) == ("redis", "events")
    assert cli("webhooks", "rotate", "feed").code == 2
