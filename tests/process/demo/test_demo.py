"""The demo works on any machine, reports accurately, and leaves no process running."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.drivers.processes import programs
from treadle.app import Treadle
from treadle.cli.demo import app as demo_app
from treadle.cli.demo import batch as demo_batch
from treadle.cli.demo.batch import Batch
from treadle.db.embedded import EmbeddedServer
from treadle.producer.handle import Handle


@dataclass
class Ran:
    """A demo that ran to its end."""

    folder: Path
    code: int
    output: str
    errors: str

    def section(self, title: str) -> str:
        """The text under a heading."""
        return self.output.split(f"== {title}", 1)[1].split("\n== ", 1)[0]


@pytest.fixture(scope="module")
def ran(pg_bin: Path | None) -> Iterator[Ran]:
    """One run for all tests of what it says."""
    if pg_bin is not None:
        pytest.skip("the demo runs on the embedded PostgreSQL only")
    with programs.data_folder() as folder:
        # What a user has configured for their own database must not disturb it.
        mine = {"TREADLE_QUEUES": "mine", "TREADLE_SLOTS": "1", "TREADLE_LISTEN_URL": "dbname=no"}
        done = programs.run((*programs.PROGRAM, "demo"), programs.environment(folder, **mine))
        yield Ran(folder, done.returncode, done.stdout, done.stderr)


@pytest.mark.requirement("B12")
def test_the_demo_succeeds(ran: Ran) -> None:
    assert ran.code == 0, ran.output + ran.errors
    assert "\x1b" not in ran.output, "no animation and no colours where there is no terminal"


def test_the_tasks_of_the_killed_worker_are_finished_by_the_other(ran: Ran) -> None:
    killed = re.search(r"worker-1 killed.*\n((?: {9}\w+ .*…\w{8}\n)+)", ran.output)
    assert killed is not None
    lost = re.findall(r"(\w+) (.+) …(\w{8})", killed.group(1))

    assert len(lost) >= 2
    for kind, name, end in lost:
        assert f"reaper took back {kind} {name} …{end}" in ran.output
        assert re.search(rf"worker-2 finished {kind} {name} …{end} at attempt [2-5]", ran.output)
        assert name in ran.section("Recovered after the crash")


def test_the_retry_and_the_dead_letter_are_shown_with_their_attempts(ran: Ran) -> None:
    retried = ran.section("A retry that succeeded")
    assert retried.count("ConnectionError: blog.example answers 503") == 1
    assert retried.count("completed") == 1
    dead = ran.section("A dead letter")
    assert dead.count("ValueError: 0815.csv: '12,4O' is not a number") == 3


def test_the_summary_counts_every_type(ran: Ran) -> None:
    rows = [line.split() for line in ran.section("Summary").splitlines()[1:] if line.strip()]

    counts = {row[0]: row[1:] for row in rows}
    assert rows[0] == ["type", "enqueued", "completed", "retries", "recovered", "dead", "letters"]
    assert counts["publish"] == ["1", "1", "1", "·", "·"]
    assert counts["import_invoice"] == ["1", "·", "2", "·", "1"]
    assert counts["charge"] == ["1", "1", "·", "·", "·"]
    assert counts["all"][:3] == ["60", "59", "3"]
    assert int(counts["all"][3]) >= 2


def test_nothing_is_left_running(ran: Ran) -> None:
    line = re.search(r"processes: .*", ran.output)
    assert line is not None
    pids = re.findall(r"(?:worker-1|worker-2|reaper|promoter) (\d+)", line.group(0))

    assert len(pids) == 4
    assert [pid for pid in pids if programs.is_alive(int(pid))] == []
    assert programs.left_running(ran.folder) == []


def test_the_next_commands_work_as_printed(ran: Ran) -> None:
    env = programs.environment(ran.folder)

    dead, shown, dev = programs.next_commands(ran.output)

    said = programs.run(dead, env)
    assert said.returncode == 0, said.stderr
    assert "0815.csv" in said.stdout
    said = programs.run(shown, env)
    assert said.returncode == 0, said.stderr
    assert "published to blog.example" in said.stdout
    assert programs.arguments(dev) == ["dev"]
    assert programs.left_running(ran.folder) == []


def test_a_plain_user_has_the_data_at_home(pg_bin: Path | None) -> None:
    if pg_bin is not None:
        pytest.skip("the demo runs on the embedded PostgreSQL only")
    program, extra, give, options = programs.plain_user()
    with programs.data_folder() as home:
        give(home)
        env = {"PATH": os.defpath, "HOME": str(home), "XDG_DATA_HOME": str(home), **extra}
        with programs.Program("demo", env=env, program=program, cwd="/", **options) as demo:
            data = Path(demo.until(rf"started ({home}/treadle/root-\w+-pg18)").group(1))
            demo.until("processes: ")
            assert demo.end(signal.SIGINT) == 128 + signal.SIGINT

        assert programs.left_running(data) == []
        assert programs.left_running(home) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_its_processes(number: signal.Signals, ran: Ran) -> None:
    with programs.Program("demo", env=programs.environment(ran.folder)) as demo:
        demo.until("worker-1 killed" if number == signal.SIGINT else "processes: ")
        assert len(programs.left_running(ran.folder)) > 3

        code = demo.end(number)

    assert code == 128 + number
    assert f"{number.name}: all processes of the demo are stopped" in demo.lines[-1]
    assert programs.left_running(ran.folder) == []


def test_a_folder_of_another_version_is_left_alone_with_a_way_out(ran: Ran) -> None:
    with EmbeddedServer(ran.folder) as server, psycopg.connect(server.url()) as conn:
        conn.execute("update treadle.migrations set checksum = 'other' where version = 1")

    done = programs.run((*programs.PROGRAM, "demo"), programs.environment(ran.folder))

    assert done.returncode == 1
    assert f"{ran.folder} was created by another version of treadle" in done.stderr
    assert "TREADLE_DATA_DIR=" in done.stderr
    assert programs.left_running(ran.folder) == []


def story() -> tuple[Batch, dict[UUID, Any], dict[UUID, list[Any]], UUID]:
    """The expected run: one task lost and recovered, one flaky, one dead, one charged."""
    app, batch = Treadle(), Batch()
    lost, flaky, dead, charged = (uuid4() for _ in range(4))
    batch.ids, batch.flaky, batch.hopeless = [lost, flaky, dead, charged], flaky, dead
    batch.charged = [Handle(app, charged), Handle(app, charged, created=False)]
    row = {"type": "t", "title": "x", "status": "completed", "completed_by": "w"}
    tasks = {task_id: dict(row) for task_id in batch.ids}
    tasks[dead]["status"] = "dead_lettered"
    crash = {"class": "crash", "reason": "heartbeat_timeout"}
    error, fine = {"class": "error", "reason": None}, {"class": None, "reason": None}
    attempts: dict[UUID, list[Any]] = {
        lost: [crash, fine],
        flaky: [error, fine],
        dead: [error] * 3,
        charged: [fine],
    }
    return batch, tasks, attempts, lost


async def test_failures_of_earlier_demos_do_not_affect_the_next_one(app: Treadle) -> None:
    db = app.db
    await db.types.declare(demo_app.app.registry.declaration(), [])
    for kind in ("import_invoice", "code"):
        await db.breakers.trip(kind, 600)

    await demo_batch.cancel_old_runs(db)

    kept_back = {row["type"] for row in await db.breakers.list() if row["state"] != "closed"}
    assert kept_back == {"code"}


def test_the_checks_of_the_demo_pass_on_the_expected_outcome() -> None:
    batch, tasks, attempts, lost = story()

    assert demo_batch.problems(batch, tasks, attempts, lost=[lost], survivor="w") == []


def test_the_checks_of_the_demo_find_unexpected_outcomes() -> None:
    batch, tasks, attempts, lost = story()
    assert batch.flaky is not None
    assert batch.hopeless is not None
    tasks[batch.hopeless]["status"] = "completed"
    tasks[lost]["completed_by"] = "somebody"
    attempts[lost] = attempts[lost][1:]
    attempts[batch.flaky] = attempts[batch.flaky][1:]
    attempts[batch.hopeless].pop()
    batch.charged[1].created = True

    found = demo_batch.problems(batch, tasks, attempts, lost=[lost], survivor="w")

    assert len(found) == 6, found
    assert demo_batch.problems(batch, tasks, attempts, lost=[], survivor="w")[1] == (
        "the killed worker held no task"
    )
