"""`treadle dev` keeps everything running for daily work, and stops it when asked."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.drivers.processes import programs
from treadle.db.embedded import EmbeddedServer

APP = "examples.hello:app"
# The URL that dev tells people to export, and a worker that has started; its name has its pid.
EXPORTED = r"export TREADLE_DATABASE_URL='(.+)'"
WORKER = r"worker .*worker\.started .*agent=\S*\.(\d+)\.\w+"
# An application with a database of its own in its code, which dev must leave alone.
OWN_URL = """
from treadle import Treadle
app = Treadle("postgresql://localhost:1/production")

@app.task(queue=app.queue("mail"))
def where(depth: int = 1) -> str:
    return app.url
"""


@pytest.fixture(scope="module")
def folder(pg_bin: Path | None) -> Iterator[Path]:
    if pg_bin is not None:
        pytest.skip("dev runs on the embedded PostgreSQL only")
    with programs.data_folder() as place:
        yield place


def pid_of_worker(dev: programs.Program) -> int:
    """Wait for a worker that has started; its name has its pid."""
    return int(dev.until(WORKER).group(1))


def enqueue(url: str, *words: str) -> str:
    """The result of a task that was enqueued from another terminal."""
    env = programs.environment(Path("/nowhere"), TREADLE_DATABASE_URL=url)
    done = programs.run((*programs.PROGRAM, "tasks", "enqueue", *words, "--wait"), env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("B12")
def test_it_runs_tasks_restarts_dead_processes_and_stops_on_sigterm(folder: Path) -> None:
    with programs.Program("dev", APP, env=programs.environment(folder)) as dev:
        url = dev.until(EXPORTED).group(1)
        worker = pid_of_worker(dev)

        assert "Hello, Ada!" in enqueue(url, "hello", '{"name": "Ada"}')
        os.kill(worker, signal.SIGKILL)
        dev.until("worker ended with code -9; restarting it in 0.5 s")
        assert pid_of_worker(dev) != worker
        assert "Hello, Eve!" in enqueue(url, "hello", '{"name": "Eve"}')
        EmbeddedServer(folder).stop("immediate")
        dev.until("PostgreSQL has stopped; starting it again")
        wait_until_back(url)
        assert "Hello, Zoe!" in enqueue(url, "hello", '{"name": "Zoe"}')

        assert dev.end(signal.SIGTERM) == 0
    assert "SIGTERM: everything is stopped" in dev.lines[-1]
    assert any(line.startswith("worker") and "worker.stopped" in line for line in dev.lines)
    assert programs.left_running(folder) == []


def wait_until_back(url: str) -> None:
    """Wait until the server answers again."""
    deadline = time.monotonic() + programs.WITHIN_S
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.mark.requirement("W14")
def test_it_uses_its_own_database_and_a_free_port_regardless_of_the_code(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(OWN_URL)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    given = {"PYTHONPATH": path}
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        # Other addresses would need a token; this one is for this host only.
        given |= {"TREADLE_PORT": str(taken), "TREADLE_HOST": "0.0.0.0"}
        with programs.Program("dev", "shop:app", env=programs.environment(folder, **given)) as dev:
            database = dev.find(EXPORTED).group(1)
            dev.find("tasks enqueue where '{}' --wait")
            dev.find("processes: server, worker, reaper, promoter, scheduler, pruner, notifier")
            dev.find(WORKER)
            assert database in enqueue(database, "where", "--queue", "mail")

            url = dev.find(r"HTTP at (\S+), documentation at /docs").group(1)
            dev.find(rf"server .*server\.started .*url={url}")
            assert url.startswith("http://127.0.0.1:")
            assert not url.endswith(f":{taken}")
            assert httpx2.get(f"{url}/health", timeout=30).json()["status"] == "ok"
            task = {"type": "where", "queue": "mail"}
            assert httpx2.post(f"{url}/v1/tasks", json=task, timeout=30).status_code == 201
            dev.find(r"dispatcher\.started")

            assert dev.end(signal.SIGINT) == 0
    assert any(line.startswith("server") and "server.stopped" in line for line in dev.lines)
    assert programs.left_running(folder) == []


def test_it_uses_the_database_of_the_settings_and_restarts_the_worker_when_a_file_changes(
    folder: Path, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(OWN_URL)
    env = programs.environment(folder, TREADLE_DATABASE_URL=database_url)
    with programs.Program("dev", "shop:app", "--reload", env=env, cwd=str(tmp_path)) as dev:
        dev.find("database .*, from environment TREADLE_DATABASE_URL")
        worker = pid_of_worker(dev)
        assert f"{database_url}" in enqueue(database_url, "where", "--queue", "mail")

        (tmp_path / "shop.py").write_text(OWN_URL.replace("app.url", "'changed'"))

        dev.until("shop.py has changed; restarting the worker")
        assert pid_of_worker(dev) != worker
        assert "changed" in enqueue(database_url, "where", "--queue", "mail")
        assert dev.end(signal.SIGTERM) == 0
    assert not EmbeddedServer(folder).running


def test_it_does_not_migrate_the_database_of_the_settings(
    folder: Path, empty_database_url: str
) -> None:
    env = programs.environment(folder, TREADLE_DATABASE_URL=empty_database_url)

    done = programs.run((*programs.PROGRAM, "dev", APP), env)

    assert done.returncode != 0
    assert "treadle db migrate" in done.stderr


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("examples.helo:app", "there is no module 'examples.helo'"),
        ("examples.hello:ap", "has no 'ap'"),
        ("tests.drivers.processes.programs:ROOT", "Treadle application"),
    ],
)
def test_a_wrong_path_is_reported_before_anything_starts(
    path: str, said: str, folder: Path
) -> None:
    done = programs.run((*programs.PROGRAM, "dev", path), programs.environment(folder))

    assert done.returncode == 2
    assert said in done.stderr
    assert "│" not in done.stdout
