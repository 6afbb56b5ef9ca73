"""`treadle dev` keeps everything running for daily work, and stops it when asked."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.process import programs
from treadle.db.embedded import EmbeddedServer

APP = "examples.hello:app"
# An application with a database of its own in its code, which dev must leave alone.
OWN_URL = """
from treadle import Treadle
app = Treadle("postgresql://localhost:1/production")

@app.task(queue="mail")
def where(depth: int = 1) -> str:
    return app.url
"""


@pytest.fixture(scope="module")
def folder(pg_bin: Path | None) -> Iterator[Path]:
    if pg_bin is not None:
        pytest.skip("dev runs on the embedded PostgreSQL only")
    with programs.data_folder() as place:
        yield place


def url_from(dev: programs.Program) -> str:
    """The URL that dev tells people to export."""
    return dev.until(r"export TREADLE_DATABASE_URL='(.+)'").group(1)


def address_from(dev: programs.Program) -> str:
    """Where dev says that the server is, once it is there."""
    url = dev.until(r"HTTP at (\S+), described at /docs").group(1)
    dev.until(rf"server .*server\.started .*url={url}")
    return url


def pid_of_worker(dev: programs.Program) -> int:
    """Wait for a worker that has started; its name has its pid."""
    return int(dev.until(r"worker .*worker\.started .*agent=\S*\.(\d+)\.\w+").group(1))


def enqueue(url: str, *words: str) -> str:
    """The result of a task that was enqueued from another terminal."""
    env = programs.environment(Path("/nowhere"), TREADLE_DATABASE_URL=url)
    done = programs.run((*programs.PROGRAM, "tasks", "enqueue", *words, "--wait"), env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("B12")
def test_it_runs_tasks_mends_what_dies_and_stops_on_sigterm(folder: Path) -> None:
    with programs.Program("dev", APP, env=programs.environment(folder)) as dev:
        url = url_from(dev)
        worker = pid_of_worker(dev)

        assert "Hello, Ada!" in enqueue(url, "hello", '{"name": "Ada"}')
        os.kill(worker, signal.SIGKILL)
        dev.until("worker ended with code -9; it starts again in 0.5 s")
        assert pid_of_worker(dev) != worker
        assert "Hello, Eve!" in enqueue(url, "hello", '{"name": "Eve"}')
        EmbeddedServer(folder).stop("immediate")
        dev.until("PostgreSQL is gone; starting it again")
        assert "Hello, Zoe!" in enqueue_when_back(url)

        assert dev.end(signal.SIGTERM) == 0
    assert "SIGTERM: everything is stopped" in dev.lines[-1]
    assert any(line.startswith("worker") and "worker.stopped" in line for line in dev.lines)
    assert programs.left_running(folder) == []


def enqueue_when_back(url: str) -> str:
    """As enqueue, once the server answers again."""
    env = programs.environment(Path("/nowhere"), TREADLE_DATABASE_URL=url)
    words = ("tasks", "enqueue", "hello", '{"name": "Zoe"}', "--wait")
    for _ in range(20):
        done = programs.run((*programs.PROGRAM, *words), env)
        if done.returncode != 6:
            break
    return done.stdout


def test_the_application_works_on_the_embedded_server_whatever_its_code_says(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(OWN_URL)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = programs.environment(folder, PYTHONPATH=path, DATABASE_URL="postgresql:///no")
    with programs.Program("dev", "shop:app", env=env) as dev:
        url = url_from(dev)
        dev.until("tasks enqueue where '{}' --wait")
        dev.until("not used here: the database URL from environment DATABASE_URL")
        pid_of_worker(dev)

        assert url in enqueue(url, "where", "--queue", "mail")

        assert dev.end(signal.SIGINT) == 0
    assert programs.left_running(folder) == []


@pytest.mark.requirement("W14")
def test_the_server_answers_at_the_address_that_is_said_also_when_its_port_is_taken(
    folder: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        # An address for others would want a token; here it is for this host alone.
        env = programs.environment(folder, TREADLE_PORT=str(taken), TREADLE_HOST="0.0.0.0")
        with programs.Program("dev", APP, env=env) as dev:
            url = address_from(dev)
            server = httpx2.get(f"{url}/health", timeout=30)
            task = {"type": "hello", "spec": {"name": "Ada"}}
            made = httpx2.post(f"{url}/v1/tasks", json=task, timeout=30)

            assert url.startswith("http://127.0.0.1:")
            assert not url.endswith(f":{taken}")
            assert server.json()["status"] == "ok"
            assert made.status_code == 201
            if not any("dispatcher.started" in line for line in dev.lines):
                dev.until(r"dispatcher\.started")
            assert dev.end(signal.SIGTERM) == 0
    assert any(line.startswith("server") and "server.stopped" in line for line in dev.lines)
    assert programs.left_running(folder) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("examples.helo:app", "there is no module 'examples.helo'"),
        ("examples.hello:ap", "has no 'ap'"),
        ("tests.process.programs:ROOT", "Treadle application"),
    ],
)
def test_a_wrong_path_is_told_before_anything_starts(path: str, said: str, folder: Path) -> None:
    done = programs.run((*programs.PROGRAM, "dev", path), programs.environment(folder))

    assert done.returncode == 2
    assert said in done.stderr
    assert "│" not in done.stdout
