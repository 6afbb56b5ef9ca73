"""`create` creates only new objects and `update` changes only existing ones, also in a race."""

import pytest

from tests.drivers.commands import Cli, start
from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("B6")

# What each noun needs to create a thing, and a change that alone would not be enough to create it.
NOUNS = {
    "queues": (("--priority", "80"), ("--priority", "20")),
    "types": (("--max-attempts", "5"), ("--max-attempts", "6")),
    "gates": (("--limit", "50", "--per", "60"), ("--limit", "40")),
    "schedules": (("@daily", "--type", "code"), ("@weekly",)),
    "triggers": (("--on", "paid", "--task", '{"type": "code"}'), ("--on", "sent")),
    "webhooks": (("https://example.org/hook",), ("--kind", "dag.*")),
    "projects": (("--share", "3"), ("--share", "4")),
    "agents": (("--url", "https://example.org"), ("--url", "https://example.net")),
}


@pytest.mark.parametrize("noun", NOUNS)
def test_create_refuses_what_exists_and_changes_nothing(noun: str, cli: Cli, fresh: Driver) -> None:
    complete, change = NOUNS[noun]
    assert cli(noun, "create", "x", *complete).code == 0
    before = fresh.contents()

    for settings in (complete, change):
        refused = cli(noun, "create", "x", *settings)

        assert (refused.code, refused.out) == (4, "")
        assert f"hint: To change it: treadle {noun} update x\n" in refused.err
    assert fresh.contents() == before


@pytest.mark.parametrize("noun", NOUNS)
def test_update_refuses_what_does_not_exist_and_creates_nothing(
    noun: str, cli: Cli, fresh: Driver
) -> None:
    before = fresh.contents()

    for settings in NOUNS[noun]:
        refused = cli(noun, "update", "x", *settings)

        assert (refused.code, refused.out) == (3, "")
        assert f"hint: To create it: treadle {noun} create x\n" in refused.err
    assert fresh.contents() == before


@pytest.mark.parametrize("noun", NOUNS)
def test_update_changes_and_create_or_update_does_either(
    noun: str, cli: Cli, fresh: Driver
) -> None:
    complete, change = NOUNS[noun]

    assert cli(noun, "create", "x", *complete, "--or-update").code == 0
    created = fresh.contents()
    assert cli(noun, "update", "x", *change).code == 0
    updated = fresh.contents()
    assert updated != created
    assert cli(noun, "create", "x", *complete, "--or-update").code == 0
    assert fresh.contents() != updated


def test_an_unknown_name_in_the_settings_is_not_taken_for_the_thing_itself(cli: Cli) -> None:
    cli("triggers", "create", "x", "--on", "paid", "--task", '{"type": "code"}')

    refused = cli("triggers", "update", "x", "--task", '{"type": "cod"}')

    assert refused.code == 3
    assert "there is no task type" in refused.err


@pytest.mark.parametrize(
    ("noun", "hold"),
    [
        ("queues", "select treadle.define_queue('x')"),
        ("webhooks", """select treadle.define_webhook('x', '{"url": "https://example.org/"}')"""),
    ],
)
def test_of_two_creates_at_once_one_succeeds(noun: str, hold: str, fresh: Driver) -> None:
    words = (noun, "create", "x", *NOUNS[noun][0])

    ends = run_while_held(fresh, hold, "rollback", [words, words])

    assert sorted(ends) == [0, 4]


def test_an_update_does_not_create_what_is_deleted_meanwhile(fresh: Driver) -> None:
    settings = '{"url": "https://example.org/"}'
    fresh.rows("select treadle.define_webhook('x', %s)", settings)
    words = ("webhooks", "update", "x", "https://example.net")

    ends = run_while_held(fresh, "select treadle.remove_webhook('x')", "commit", [words])

    assert ends == [3]
    assert fresh.rows("select from treadle.webhooks") == []


def run_while_held(
    driver: Driver, hold: str, end: str, commands: list[tuple[str, ...]]
) -> list[int]:
    """Start commands that all wait for a transaction, end it, and return their exit codes."""
    holder = driver.another()
    waiting = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
    holder.rows("begin")
    holder.rows(hold)
    processes = [start(*words, TREADLE_DATABASE_URL=driver.url) for words in commands]
    try:
        while driver.value(waiting, holder.conn.info.backend_pid) < len(commands):
            assert [process.poll() for process in processes] == [None] * len(commands)
        holder.rows(end)
        for process in processes:
            process.communicate(timeout=30)
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes]
