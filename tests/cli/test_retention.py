"""`treadle pruner`, `treadle archive`, and retention ages of queues."""

from itertools import product
from uuid import UUID

import psycopg
import pytest

from tests.drivers.commands import NO_TASK, Cli, Conn, complete, dead_letter, on_terminal
from treadle.cli.common import parse_age
from treadle.errors import InvalidArgument


@pytest.fixture
def conn(database_url: str) -> Conn:
    return psycopg.connect(database_url, autocommit=True)


@pytest.mark.requirement("B9")
def test_a_queue_is_given_an_age_and_what_is_older_is_archived(cli: Cli, conn: Conn) -> None:
    task = complete(conn, {"pages": 3})
    letter = dead_letter(conn)
    assert cli("pruner", "--dry-run").rows[1:] == []
    assert cli("queues", "update", "default", "--keep", "0s").code == 0
    [due] = cli("pruner", "--dry-run", "--json").json["items"]
    assert (due["queue"], due["status"], due["tasks"]) == ("default", "completed", 1)

    done = cli("pruner", "--once", "--json")

    assert (done.code, done.json["tasks"], done.json["kept"]) == (0, 1, 0)
    [row] = cli("archive", "list", "--json").json["items"]
    assert (row["id"], row["status"]) == (task, "completed")
    shown = cli("archive", "show", task[-8:], "--json").json
    assert shown["task"]["output"] == {"pages": 3}
    assert ["output", '{"pages": 3}'] in cli("archive", "show", task).rows
    assert cli("tasks", "show", letter).code == 0


def test_a_task_that_is_archived_is_not_just_missing(cli: Cli, conn: Conn) -> None:
    task = complete(conn, 1)
    cli("queues", "update", "default", "--keep", "0")
    cli("pruner", "--once")

    for verb, words in product(("show", "retry"), (task, task[-8:])):
        gone = cli("tasks", verb, words)
        assert gone.code == 3
        assert "was archived" in gone.err
        assert f"treadle archive show {task}" in gone.err
    for verb in ("show", "retry"):
        assert "archived" not in cli("tasks", verb, NO_TASK).err
    missing = cli("archive", "show", NO_TASK)
    assert missing.code == 3
    assert "treadle archive list" in missing.err


def test_dropped_tasks_are_in_no_history(cli: Cli, conn: Conn) -> None:
    complete(conn, 1)
    cli("queues", "update", "default", "--keep", "0", "--prune", "drop")

    done = cli("pruner", "--once")

    assert "tasks: 1" in done.err
    assert cli("archive", "list").rows[1:] == []


def test_the_ages_of_all_things_are_listed(cli: Cli) -> None:
    cli("queues", "create", "mail", "--keep", "30d", "--keep-cancelled", "12h", "--keep-dead", "1w")
    assert cli("retention", "set", "events", "90d").err == "events are kept for 90d\n"

    rows = {tuple(row[:2]): row[2:] for row in cli("retention", "list").rows[1:]}

    assert rows["completed", "mail"] == ["30d", "archive"]
    assert rows["cancelled", "mail"] == ["12h", "archive"]
    assert rows["dead_lettered", "mail"] == ["7d", "archive"]
    assert rows["completed", "default"][0] == "forever"
    assert rows["events", ""][0] == "90d"
    cli("retention", "set", "events", "forever")
    cli("queues", "update", "mail", "--keep", "forever")
    listed = cli("retention", "--json").json["items"]
    kept = {(each["what"], each["queue"]): each["keep_s"] for each in listed}
    assert kept["events", None] is None
    assert kept["completed", "mail"] is None
    assert kept["dead_lettered", "mail"] == 604800


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "update", "default", "--keep", "soon"),
        ("queues", "update", "default", "--keep", "1y"),
        ("queues", "update", "default", "--prune", "burn"),
        ("retention", "set", "tasks", "3d"),
        ("retention", "set", "event", "3d"),
    ],
)
def test_a_wrong_age_is_refused_with_what_to_write(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli(*words)

    assert done.code == 2
    assert "hint:" in done.err


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("1.5h", 5400), ("30d", 2592000), ("2w", 1209600)]
)
def test_ages_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_age(text, "x") == seconds
    assert parse_age("forever", "x") is None
    with pytest.raises(InvalidArgument, match="not an age"):
        parse_age(f"-{text}", "x")


def test_once_shows_how_far_it_is_on_a_terminal(conn: Conn, database_url: str) -> None:
    for n in range(3):
        UUID(complete(conn, n))
    conn.execute("""select treadle.define_queue('default', '{"keep_completed_s": 0}')""")

    shown = on_terminal("pruner", "--once", TREADLE_DATABASE_URL=database_url)

    assert "3/3" in shown
    assert "/s" in shown
    assert "tasks: 3" in shown
