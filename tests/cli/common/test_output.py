"""A table with colours on a terminal, tab-separated text in a pipe, no control characters."""

import psycopg
import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn
from treadle.cli import output
from treadle.cli.output import Column

EVIL = "\x1b]0;owned\x07\x1b[31mred\t[bold]x[/bold]\u202eabc"


@pytest.fixture(scope="module")
def evil(still_url: str) -> str:
    """A task whose error would like to steer a terminal."""
    with psycopg.connect(still_url, autocommit=True) as conn:
        return commands.dead_letter(conn, error=EVIL)


@pytest.mark.parametrize(
    "words",
    ["tasks list", "dead-letters list", "agents list", "queues list", "config show", "db status"],
)
def test_in_a_pipe_every_line_has_the_same_columns(words: str, still: Cli, evil: str) -> None:
    shown = still(*words.split())

    assert shown.code == 0
    head, *rows = shown.rows
    assert rows
    assert len(head) > 2
    assert {len(row) for row in rows} == {len(head)}
    assert "\x1b" not in shown.out


def test_in_a_pipe_ids_and_times_are_not_shortened(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn, title="a title")

    head, row = cli("tasks", "list").rows

    shown = dict(zip(head, row, strict=True))
    assert shown["id"] == task
    assert shown["status"] == "ready"
    assert shown["about"] == "a title"
    assert shown["created"].endswith("Z")


def test_what_is_not_the_result_goes_to_stderr(cli: Cli) -> None:
    shown = cli("tasks", "list")

    assert len(shown.rows) == 1
    assert shown.err.startswith("no task matches; ")


def test_ids_alone_can_be_passed_on(cli: Cli, sync_conn: Conn) -> None:
    tasks = [commands.enqueue(sync_conn) for _ in range(3)]

    assert cli("tasks", "list", "-q").out.split() == tasks[::-1]


def test_a_terminal_shows_mark_word_and_colour(database_url: str, sync_conn: Conn) -> None:
    commands.dead_letter(sync_conn, error=EVIL)
    task = commands.complete(sync_conn, 1)
    commands.enqueue(sync_conn, title="\x1b[31m[bold]x[/bold]")

    shown = commands.on_terminal("tasks", "list", TREADLE_DATABASE_URL=database_url)

    assert "\x1b[32m✓ completed" in shown
    assert "\x1b[35m† dead_lettered" in shown
    assert f"…{task[-8:]}" in shown
    assert " ago" in shown
    assert "\\x1b[31m[bold]x[/bold]" in shown
    assert "\\x202eabc" in shown
    for evil in ("\x1b]0;", "\x1b[31m", "\x07", "\u202e"):
        assert evil not in shown


def test_no_color_means_no_escape_codes(still_url: str, evil: str) -> None:
    settings = {"TREADLE_DATABASE_URL": still_url, "NO_COLOR": "1"}

    shown = commands.on_terminal("tasks", "show", evil, **settings)

    assert "† dead_lettered" in shown
    assert "dead-lettered after 1 attempt" in shown
    assert "ATTEMPT" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0421, "42ms"), (1.23, "1.2s"), (59.9, "59s"), (60, "1m"), (125, "2m 5s"),
     (3600, "1h"), (7260, "2h 1m"), (90_000, "1d 1h"), (None, "-")],
)  # fmt: skip
def test_a_duration_has_one_or_two_units(seconds: float | None, words: str) -> None:
    assert output.length(seconds) == words


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_a_narrow_terminal_loses_extra_columns_and_nothing_else(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    row = {"id": "x" * 20, "extra": "y" * 30, "text": "word " * 20}
    shown = [Column("id", "id"), Column("more", "extra", extra=True), Column("text", "text")]

    output.print_table([row], shown)

    head, line = capsys.readouterr().out.splitlines()
    assert max(len(head), len(line)) <= columns
    assert "x" * 20 in line
    assert ("MORE" in head) == ("y" * 30 in line) == (columns > 40)
    assert "word " in line
    assert line.rstrip().endswith("…") == (columns < 200)
