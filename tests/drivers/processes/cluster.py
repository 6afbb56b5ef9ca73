"""A PostgreSQL primary with a chain of standbys, each synchronous to the server before it.

The primary can be frozen or killed, as when its host hangs or is lost; then the next server is
promoted. What a primary has acknowledged is on the next server already.
"""

import os
import secrets
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg
import pytest

from treadle.db.embedded import EmbeddedServer, embedded_bindir
from treadle.db.embedded import account as files
from treadle.errors import MissingExtra

SETTINGS = {
    "wal_retrieve_retry_interval": "100ms",
    "shared_buffers": "16MB",
    # A killed server leaves what it has in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    # Only processes are killed here, never the machine.
    "fsync": "off",
}
FOLLOWED = "select from pg_stat_replication where state = 'streaming' and sync_state = 'sync'"
WITHIN_S = 60.0


class Cluster:
    """A server and its standbys; it is the test's own, and may be lost one by one."""

    def __init__(self, bindir: Path | None) -> None:
        try:
            self._bindir = bindir or embedded_bindir()
        except MissingExtra as error:
            pytest.skip(str(error))
        if not (self._bindir / "pg_basebackup").is_file():
            pytest.skip(f"there is no pg_basebackup in {self._bindir}")
        self._account = files.server_account()
        self._chain: list[EmbeddedServer] = []
        self._frozen: list[int] = []
        self._first = 0

    @property
    def primary(self) -> EmbeddedServer:
        return self._chain[self._first]

    @property
    def url(self) -> str:
        """All servers, for clients that look for the primary."""
        hosts = ",".join(str(server.socket_dir) for server in self._chain)
        ports = ",".join(str(server.port) for server in self._chain)
        return f"host={hosts} port={ports} user=postgres dbname=postgres"

    def start(self) -> None:
        """Start the first server."""
        self._chain.append(self._new())
        self.primary.start()

    def add_standby(self) -> None:
        """Copy the last server of the chain, and let the copy follow it."""
        source, standby = self._chain[-1], self._new()
        self._chain.append(standby)
        files.claim_folder(standby.data_dir, self._account)
        data = files.give_folder(standby.data_dir / "data", self._account)
        programs = files.reachable_install(self._bindir, standby.data_dir, self._account)
        url = f"host={source.socket_dir} port={source.port} user=postgres"
        command = [str(programs / "pg_basebackup"), "-d", url, "-D", str(data)]
        done = files.run_as(self._account, [*command, "-R", "-c", "fast", "--no-sync"])
        assert done.returncode == 0, done.stderr
        standby.start()
        if source is self.primary:
            self._await_standby()

    def freeze(self) -> None:
        """SIGSTOP every process of the primary: its sockets stay open without a response."""
        self._frozen += self._send(signal.SIGSTOP)

    def kill(self) -> None:
        """SIGKILL every process of the primary."""
        self._send(signal.SIGKILL)

    def promote(self) -> None:
        """Make the first standby the primary."""
        self._first += 1
        with psycopg.connect(self.primary.url(), autocommit=True) as conn:
            assert conn.execute("select pg_promote(true, 60)").fetchone() == (True,)
        if self.primary is not self._chain[-1]:
            self._await_standby()

    def restart(self) -> None:
        """What `pg_ctl restart` does."""
        self.primary.stop()
        self.primary.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self._frozen:
            os.kill(pid, signal.SIGKILL)
        for server in self._chain[: self._first]:
            # A killed server leaves a segment of shared memory, which its next start takes away.
            server.start()
        for server in self._chain:
            server.stop("immediate")
            shutil.rmtree(server.data_dir, ignore_errors=True)

    def _new(self) -> EmbeddedServer:
        folder = Path(tempfile.gettempdir()) / f"treadle-test-{secrets.token_hex(4)}"
        return EmbeddedServer(folder, bindir=self._bindir, settings=SETTINGS)

    def _await_standby(self) -> None:
        """Acknowledge nothing from now on that the next server does not have."""
        until = time.monotonic() + WITHIN_S
        with psycopg.connect(self.primary.url(), autocommit=True) as conn:
            conn.execute("alter system set synchronous_standby_names = '*'")
            conn.execute("select pg_reload_conf()")
            while conn.execute(FOLLOWED).fetchone() is None:
                assert time.monotonic() < until, "no standby follows"
                time.sleep(0.05)

    def _send(self, number: signal.Signals) -> list[int]:
        first = self.primary.pid
        assert first is not None
        # It starts no more of them once it is stopped.
        os.kill(first, signal.SIGSTOP)
        pids = [*_children(first), first]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(stat.parent.name))
    return found
