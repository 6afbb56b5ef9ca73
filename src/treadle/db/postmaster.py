"""What a PostgreSQL server says of itself in `postmaster.pid`, and whether it still holds."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PORT = 5432
# The protocol's shortest question; every server answers it with at least one byte.
_SSL_REQUEST = bytes.fromhex("00000008 04d2162f")


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
