"""The embedded server runs for root and for plain users, and changes nothing else."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from treadle.db.embedded import EmbeddedServer, embedded_bindir
from treadle.db.embedded.account import Account, can_enter, server_account
from treadle.errors import ConfigurationError

QUICK = {"fsync": "off"}
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may switch accounts")

# Starts a server on the folder given, uses it, stops it.
CHILD = """
import sys
from pathlib import Path
import psycopg
from treadle.db.embedded import EmbeddedServer, default_data_dir
bindir = Path(sys.argv[2]) if sys.argv[2] else None
with EmbeddedServer(Path(sys.argv[1]), bindir=bindir, settings={"fsync": "off"}) as server:
    with psycopg.connect(server.url()) as conn:
        print("user", conn.execute("select session_user").fetchone()[0])
print("running", server.running)
print("home", default_data_dir())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path for a server."""
    place = Path(tempfile.mkdtemp(prefix="treadle-")).resolve()
    yield place
    shutil.rmtree(place)


def python_for(account: Account | None) -> Path | None:
    """A Python of this version that the account can run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = [Path(sys.executable), *(Path(top, version) for top in ("/usr/bin", "/usr/local/bin"))]
    reachable = (place for place in places if can_enter(place.resolve().parent, account))
    return next((place for place in reachable if place.exists()), None)


@root_only
@pytest.mark.requirement("B12")
def test_root_runs_it_as_an_unprivileged_account_and_changes_nothing_outside(
    folder: Path, pg_bin: Path | None
) -> None:
    parents = {parent: parent.stat().st_mode for parent in folder.parents}
    accounts = Path("/etc/passwd").read_text()

    with EmbeddedServer(folder, bindir=pg_bin, settings=QUICK) as server:
        data = (folder / "data").stat()
        owner = Path(f"/proc/{server.pid}").stat().st_uid

    assert data.st_mode & 0o777 == 0o700
    assert data.st_uid == owner
    assert owner != 0
    assert {parent: parent.stat().st_mode for parent in folder.parents} == parents
    assert Path("/etc/passwd").read_text() == accounts


@root_only
def test_root_gets_an_error_when_the_account_cannot_reach_the_folder(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="may not enter"):
        EmbeddedServer(folder / "deep").start()

    assert folder.stat().st_mode & 0o777 == 0o700


@root_only
def test_programs_that_the_account_cannot_reach_are_copied_once(
    folder: Path, tmp_path: Path
) -> None:
    package = embedded_bindir().parents[1]
    shutil.copytree(embedded_bindir().parent, tmp_path / package.name / "pginstall18")
    shutil.copytree(package.with_name(f"{package.name}.libs"), tmp_path / f"{package.name}.libs")
    tmp_path.chmod(0o700)
    bindir = tmp_path / package.name / "pginstall18" / "bin"

    with EmbeddedServer(folder, bindir=bindir, settings=QUICK) as server:
        assert psycopg.connect(server.url()).execute("select 1").fetchone() == (1,)
        made = (folder / f"postgres-{server.version}").stat()
    with EmbeddedServer(folder, bindir=bindir, settings=QUICK) as server:
        assert (folder / f"postgres-{server.version}").stat() == made


@pytest.mark.requirement("B12")
def test_a_plain_user_runs_it_as_themselves(pg_bin: Path | None) -> None:
    account = server_account()
    if (python := python_for(account)) is None:
        pytest.skip("every Python of this version is private to root")
    uid, groups = (account.uid, list[int]()) if account else (os.geteuid(), None)
    place = Path(tempfile.gettempdir()) / f"treadle-plain-{os.getpid()}"
    ours = [path for path in sys.path if "site-packages" in path or path.endswith("src")]

    done = subprocess.run(
        [str(python), "-c", CHILD, str(place), str(pg_bin or "")],
        user=uid if account else None,
        extra_groups=groups,
        cwd="/",
        env={"XDG_DATA_HOME": "/tmp", "PYTHONPATH": os.pathsep.join(ours)},
        capture_output=True,
        text=True,
    )

    try:
        assert done.returncode == 0, done.stderr
        assert {"user postgres", "running False"} <= set(done.stdout.splitlines())
        home = r"^home /tmp/treadle/root-[0-9a-f]{6}-pg18$"
        assert re.search(home, done.stdout, re.MULTILINE)
        assert place.stat().st_uid == uid
    finally:
        shutil.rmtree(place, ignore_errors=True)
