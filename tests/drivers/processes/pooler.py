"""A real PgBouncer in transaction mode in front of a database, where it is installed."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

SETTINGS = """
[databases]
* = {target}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
logfile = {folder}/log
"""


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """The URL of the same database through the pooler; the test is skipped where there is none."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    target = conninfo_to_dict(url)
    if not str(target.get("host")).startswith("/"):
        pytest.skip("the server is not on this machine")
    folder = Path(tempfile.mkdtemp(prefix="tb-"))
    (folder / "ini").write_text(
        SETTINGS.format(
            folder=folder,
            target=f"host={target['host']} port={target.get('port', 5432)} user={target['user']}",
        )
    )
    # It refuses to run as root; whoever owns the server's socket may connect to it.
    owner = Path(f"{target['host']}/.s.PGSQL.{target.get('port', 5432)}").stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    as_owner = os.geteuid() == 0
    process = subprocess.Popen(
        [program, str(folder / "ini")],
        user=owner.st_uid if as_owner else None,
        group=owner.st_gid if as_owner else None,
        extra_groups=[] if as_owner else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        through = make_conninfo(url, host=str(folder), port=6432)
        _wait(through, process)
        yield through
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
