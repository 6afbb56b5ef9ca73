"""`treadle pruner`, `treadle history`, and ages of queues."""

from itertools import product
from uuid import UUID

import psycopg
import pytest

from tests.cli.conftest import Cli
from tests.cli.tools import NO_TASK, Conn, complete, dead_letter, on_terminal
from treadle.cli.times import parse
from treadle.errors import InvalidArgument


@pytest.fixture
def conn(database_url: str) -> Conn:
    return psycopg.connect(database_url, autocommit=True)


@pytest.mark.requirement("B9")
def test_a_queue_is_given_an_age_and_what_is_older_is_archived(cli: Cli, conn: Conn) -> None:
    task = complete(conn, {"pages": 3})
    letter = dead_letter(conn)
    assert cli("pruner", "--dry-run").rows[1:] == []
    assert cli("queues", "define", "default", "--keep", "0s").code == 0
    [due] = cli("pruner", "--dry-run", "--json").json["items"]
    assert (due["queue"], due["status"], due["tasks"]) == ("default", "completed", 1)

    done = cli("pruner", "--once", "--json")

    assert (done.code, done.json["tasks"], done.json["kept"]) == (0, 1, 0)
    [row] = cli("history", "list", "--json").json["items"]
    assert (row["id"], row["status"]) == (task, "completed")
    shown = cli("history", "show", task[-8:], "--json").json
    assert shown["task"]["output"] == {"pages": 3}
    assert ["output", '{"pages": 3}'] in cli("history", "show", task).rows
    assert cli("tasks", "show", letter).code == 0


def test_a_task_that_is_archived_is_not_just_missing(cli: Cli, conn: Conn) -> None:
    task = complete(conn, 1)
    cli("queues", "define", "default", "--keep", "0")
    cli("pruner", "--once")

    for verb, words in product(("show", "retry"), (task, task[-8:])):
        gone = cli("tasks", verb, words)
        assert gone.code == 3
        assert "was archived" in gone.err
        assert f"treadle history show {task}" in gone.err
    for verb in ("show", "retry"):
        assert "archived" not in cli("tasks", verb, NO_TASK).err
    missing = cli("history", "show", NO_TASK)
    assert missing.code == 3
    assert "treadle history list" in missing.err


def test_dropped_tasks_are_in_no_history(cli: Cli, conn: Conn) -> None:
    complete(conn, 1)
    cli("queues", "define", "default", "--keep", "0", "--prune", "drop")

    done = cli("pruner", "--once")

    assert "tasks: 1" in done.err
    assert cli("history", "list").rows[1:] == []


def test_the_ages_of_all_things_are_listed(cli: Cli) -> None:
    cli("queues", "define", "mail", "--keep", "30d", "--keep-cancelled", "12h", "--keep-dead", "1w")
    assert cli("history", "keep", "events", "90d").err == "events are kept for 90d\n"

    rows = {tuple(row[:2]): row[2:] for row in cli("history", "keep").rows[1:]}

    assert rows["completed", "mail"] == ["30d", "archive"]
    assert rows["cancelled", "mail"] == ["12h", "archive"]
    assert rows["dead_lettered", "mail"] == ["7d", "archive"]
    assert rows["completed", "default"][0] == "for ever"
    assert rows["events", ""][0] == "90d"
    cli("history", "keep", "events", "forever")
    cli("queues", "define", "mail", "--keep", "forever")
    listed = cli("history", "keep", "--json").json["items"]
    kept = {(each["what"], each["queue"]): each["keep_s"] for each in listed}
    assert kept["events", None] is None
    assert kept["completed", "mail"] is None
    assert kept["dead_lettered", "mail"] == 604800


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "define", "default", "--keep", "soon"),
        ("queues", "define", "default", "--keep", "1y"),
        ("queues", "define", "default", "--prune", "burn"),
        ("history", "keep", "tasks", "3d"),
        ("history", "keep", "events"),
        ("history", "keep", "event", "3d"),
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
    assert parse(text, "x") == seconds
    assert parse("forever", "x") is None
    with pytest.raises(InvalidArgument, match="not an age"):
        parse(f"-{text}", "x")


def test_once_shows_how_far_it_is_on_a_terminal(conn: Conn, database_url: str) -> None:
    for n in range(3):
        UUID(complete(conn, n))
    conn.execute("""select treadle.define_queue('default', '{"keep_completed_s": 0}')""")

    shown = on_terminal("pruner", "--once", TREADLE_DATABASE_URL=database_url)

    assert "3/3" in shown
    assert "/s" in shown
    assert "tasks: 3" in shown
