"""The exit code of the real command tells a script what happened; the error is on stderr."""

import pytest

from tests.cli import tools
from tests.cli.tools import NO_SERVER, NO_TASK, Conn

CASES = {
    0: ("tasks", "list"),
    1: ("tasks", "list"),
    2: ("tasks", "enqueue", "code", "{half"),
    3: ("tasks", "show", NO_TASK),
    4: ("tasks", "retry", "READY"),
    6: ("tasks", "list", "--database-url", NO_SERVER),
    7: ("tasks", "wait", "READY", "--timeout", "0.1"),
    8: ("tasks", "wait", "DEAD"),
}


@pytest.mark.parametrize("code", CASES)
def test_the_exit_code_says_what_happened(code: int, database_url: str, sync_conn: Conn) -> None:
    tasks = {"DEAD": tools.dead_letter(sync_conn), "READY": tools.enqueue(sync_conn)}
    if code == 1:
        sync_conn.execute("insert into treadle.migrations values (9999, 'later', 'x')")

    done = tools.treadle(
        *(tasks.get(word, word) for word in CASES[code]), TREADLE_DATABASE_URL=database_url
    )

    assert done.code == code
    assert "Traceback" not in done.err
    if code:
        assert done.out == ""
        first, second = done.err.splitlines()
        assert first.startswith("error: ")
        assert second.startswith("hint: ")


def test_an_error_nobody_expected_has_no_traceback_unless_asked_for(
    database_url: str, sync_conn: Conn
) -> None:
    sync_conn.execute("alter view treadle.task_details rename column title to heading")

    plain = tools.treadle("tasks", "list", TREADLE_DATABASE_URL=database_url)
    debug = tools.treadle("--debug", "tasks", "list", TREADLE_DATABASE_URL=database_url)

    assert plain.code == debug.code == 1
    assert "Traceback" not in plain.err
    assert 'error: column "title" does not exist' in plain.err
    assert "Traceback" in debug.err
