"""`treadle worker`, `treadle reaper` and `treadle promoter` as processes."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_SERVER, Cli, Conn

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Start a process of treadle on the database; what still runs is killed at the end."""
    started = []

    def run(*arguments: str) -> "subprocess.Popen[str]":
        process = commands.start(*arguments, TREADLE_DATABASE_URL=database_url)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(what: Callable[[], object]) -> None:
    """Look again and again until it is true."""
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def events(text: str) -> list[str]:
    return [json.loads(line)["event"] for line in text.splitlines()]


def test_a_worker_runs_what_was_enqueued_and_stops_when_it_is_done(
    cli: Cli, start: Start, module: str
) -> None:
    assert cli("worker", module, "--until-empty").code == 0  # makes the types known
    add = cli("tasks", "enqueue", "add", '{"a": 20, "b": 22}').out.strip()
    bad = cli("tasks", "enqueue", "add", '{"a": "x"}').out.strip()

    worker = start("worker", module, "--until-empty", "--slots", "2", "--agent", "w1")
    out, err = worker.communicate(timeout=60)

    assert worker.returncode == 0
    assert out == ""
    assert events(err)[0] == "worker.started"
    assert events(err)[-1] == "worker.stopped"
    assert cli("tasks", "wait", add).out == "42\n"
    assert cli("tasks", "show", add, "--json").json["completed_by"] == "w1"
    refused = cli("tasks", "wait", bad)
    assert refused.code == 8
    assert "add does not take these arguments" in refused.err


def test_enqueue_can_wait_for_the_result(cli: Cli, start: Start, module: str) -> None:
    health = Path("health")
    start("worker", module, "--health-file", str(health), "--queues", "default,mail")
    wait_for(health.exists)

    done = cli("tasks", "enqueue", "sleep", '{"seconds": 0}', "--wait", "--timeout", "20")
    failed = cli("tasks", "enqueue", "give_up", "--wait", "--queue", "mail")

    assert (done.code, done.out) == (0, "slept\n")
    assert "enqueued" in done.err
    assert failed.code == 8
    assert "no use" in failed.err
    assert cli("doctor", "--health-file", str(health)).code == 0
    assert cli("doctor", "--health-file", str(health), "--max-age", "0").code == 1


def test_a_worker_drains_on_sigterm_and_exits_0(
    cli: Cli, start: Start, module: str, sync_conn: Conn
) -> None:
    cli("worker", module, "--until-empty")
    task = cli("tasks", "enqueue", "sleep", '{"seconds": 60}').out.strip()
    worker = start("worker", module, "--drain-timeout", "0.1", "--heartbeat", "5")
    wait_for(lambda: commands.status(sync_conn, task) == "running")

    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=60)

    assert worker.returncode == 0
    assert "worker.draining" in events(err)
    assert commands.status(sync_conn, task) == "ready"


@pytest.mark.own_database
@pytest.mark.parametrize("service", ["reaper", "promoter"])
def test_a_service_keeps_its_health_file_and_ends_on_sigterm(
    service: str, start: Start, cli: Cli
) -> None:
    health = Path("health")
    process = start(service, "--health-file", str(health))
    wait_for(health.exists)
    found = {each["check"]: each for each in cli("doctor", "--json").json["items"]}

    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 0
    assert events(err) == [f"{service}.started", f"{service}.stopping", f"{service}.stopped"]
    assert not health.exists()
    assert found[service]["status"] == "ok"


def test_the_option_wins_over_the_database_of_the_application(
    bare: Cli, database_url: str, folder: Path
) -> None:
    text = commands.APP.replace("Treadle()", f"Treadle({NO_SERVER!r})")
    (folder / "elsewhere.py").write_text(text)
    worker = ("worker", "elsewhere:app", "--until-empty")
    quick = {"TREADLE_CONNECT_TIMEOUT_S": "0.1"}

    assert bare(*worker, env=quick).code == 6
    assert bare(*worker, "--database-url", database_url).code == 0


@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("my_taks:app", "there is no module 'my_taks'", "Did you mean my_tasks?"),
        ("my_tasks:ap", "has no 'ap'", "Did you mean my_tasks:app?"),
        ("my_tasks:number", "is not a Treadle application", "Did you mean my_tasks:app?"),
        ("my_tasks.py:app", "not the name of a module", "Did you mean my_tasks:app?"),
        ("sub/my.py", "not the name of a module", "Did you mean sub.my:app?"),
        ("broken:app", "ZeroDivisionError: division by zero at ", "TREADLE_DEBUG"),
        ("needy:app", "No module named 'not_installed'", "TREADLE_DEBUG"),
        ("half:app", "SyntaxError", "TREADLE_DEBUG"),
        ("without:app", "has no 'app'", "app = Treadle()"),
        ("no_tasks:app", "has no tasks", "@app.task"),
    ],
)
def test_a_wrong_application_is_explained(
    path: str, said: str, hint: str, bare: Cli, module: str, folder: Path
) -> None:
    (folder / "broken.py").write_text("x = 1\ny = x / 0\n")
    (folder / "needy.py").write_text("import not_installed\n")
    (folder / "half.py").write_text("x = (\n")
    (folder / "without.py").write_text("x = 1\n")
    (folder / "no_tasks.py").write_text("from treadle import Treadle\napp = Treadle()\n")

    wrong = bare("worker", path, "--database-url", NO_SERVER)

    assert wrong.code == 2
    assert said in wrong.err
    assert hint in wrong.err
    assert "Traceback" not in wrong.err


@pytest.mark.parametrize(
    "option",
    [["--slots", "0"], ["--heartbeat", "0"], ["--claim-ttl", "-1"], ["--drain-timeout", "-1"],
     ["--queues", ","], ["--health-file", "nowhere/file"], ["--log-format", "xml"],
     ["--log-level", "loud"]],
)  # fmt: skip
def test_a_wrong_option_is_refused(option: list[str], bare: Cli, module: str) -> None:
    assert bare("worker", module, "--database-url", NO_SERVER, *option).code == 2


def test_a_worker_of_an_unknown_queue_ends_with_a_suggestion(cli: Cli, module: str) -> None:
    wrong = cli("worker", module, "--until-empty", "--queues", "deafult")

    assert wrong.code == 3
    assert "there is no queue 'deafult'" in wrong.err
    assert "Did you mean 'default'?" in wrong.err
    assert "treadle queues create deafult" in wrong.err
    assert "Traceback" not in wrong.err
