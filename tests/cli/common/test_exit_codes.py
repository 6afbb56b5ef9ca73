"""The exit code of the real command depends on the error, which is on stderr."""

import shlex
import subprocess
import sys

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_SERVER, NO_TASK, Conn
from treadle.cli import main

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
def test_the_exit_code_depends_on_the_error(code: int, database_url: str, sync_conn: Conn) -> None:
    tasks = {"DEAD": commands.dead_letter(sync_conn), "READY": commands.enqueue(sync_conn)}
    if code == 1:
        sync_conn.execute("insert into treadle.migrations values (9999, 'later', 'x')")

    done = commands.treadle(
        *(tasks.get(word, word) for word in CASES[code]), TREADLE_DATABASE_URL=database_url
    )

    assert done.code == code
    assert "Traceback" not in done.err
    if code:
        assert done.out == ""
        first, second = done.err.splitlines()
        assert first.startswith("error: ")
        assert second.startswith("hint: ")


@pytest.mark.parametrize("arguments", [["tasks", "list"], ["--debug", "tasks", "list"]])
def test_an_unexpected_error_has_a_traceback_only_on_request(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["treadle", *arguments])
    monkeypatch.setattr("treadle.cli.common.probe", lambda _: [][0])
    monkeypatch.setenv("TREADLE_DATABASE_URL", NO_SERVER)

    with pytest.raises(SystemExit) as ended:
        main()

    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert shown.out == ""
    assert "error: list index out of range" in shown.err
    assert ("Traceback" in shown.err) == ("--debug" in arguments)


def test_a_closed_pipe_is_not_an_error() -> None:
    done = subprocess.run(
        f"{shlex.join(commands.COMMAND)} db sql | head -n 1",
        shell=True, capture_output=True, text=True,
    )  # fmt: skip

    assert done.stdout.startswith("-- treadle ")
    assert done.stderr == ""
