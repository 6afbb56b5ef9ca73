"""The account of the embedded server, and the files and folders that it uses.

PostgreSQL refuses to run as root. So if root starts the server, it runs as the existing account
`nobody`. The folder itself belongs to root, and two folders in it belong to that account. So the
account cannot replace a file that root writes. Nothing outside the folder is changed.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from treadle.errors import ConfigurationError

# The path of a Unix socket is limited to 103 bytes on macOS and 107 on Linux.
_SOCKET_DIR_BYTES = 84
_LOCK = "treadle.lock"


@dataclass(frozen=True)
class Account:
    """The unprivileged account that runs the server when root starts it."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """Return the account to switch to; None if this process is not root."""
    if os.name != "posix":
        raise ConfigurationError(
            "the embedded PostgreSQL needs Linux or macOS",
            hint="Set a database instead: TREADLE_DATABASE_URL=...",
        )
    import pwd

    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account("uid 65534", 65534, 65534)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def run_as(account: Account | None, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of the server with a clean environment, without PG* variables."""
    try:
        return subprocess.run(
            command,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            umask=0o077,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except PermissionError as error:
        if account is None or error.errno != errno.EPERM:
            raise
        raise ConfigurationError(
            f"root may not switch to {account.name} here, and PostgreSQL does not run as root",
            hint="Run treadle as another user, or set a database: TREADLE_DATABASE_URL=...",
        ) from error


def can_enter(folder: Path, account: Account | None) -> bool:
    """Return whether the account may enter `folder` and all folders above it."""
    if account is None:
        return os.access(folder, os.X_OK)
    for part in (folder, *folder.parents):
        info = part.stat()
        if info.st_uid == account.uid:
            wanted = stat.S_IXUSR
        else:
            wanted = stat.S_IXGRP if info.st_gid == account.gid else stat.S_IXOTH
        if not info.st_mode & wanted:
            return False
    return True


def can_hold(folder: Path, account: Account | None) -> bool:
    """Return whether `folder` is or can become the folder of a server of this account."""
    there = next(part for part in (folder, *folder.parents) if part.exists())
    around = there.parent if there == folder else there
    return os.access(there, os.W_OK | os.X_OK) and can_enter(around, account)


def claim_folder(folder: Path, account: Account | None) -> None:
    """Prepare `folder`, which must be new, empty or used by an earlier start; else raise."""
    if re.search(r'["$`\\\n]', str(folder)):
        raise ConfigurationError(
            f"the folder {folder} contains a quote, $, backslash or newline",
            hint="Choose another folder: TREADLE_DATA_DIR=...",
        )
    try:
        _make_parents(folder, account)
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.stat()
        if info.st_uid != os.geteuid():
            raise ConfigurationError(
                f"{folder} belongs to another user (uid {info.st_uid})",
                hint="Choose another folder: TREADLE_DATA_DIR=...",
            )
        if not (folder / _LOCK).exists() and any(folder.iterdir()):
            raise ConfigurationError(
                f"{folder} contains files of another program",
                hint="Choose an empty or new folder: TREADLE_DATA_DIR=...",
            )
        if account is not None and not can_enter(folder.parent, account):
            raise ConfigurationError(
                f"started by root, the server runs as {account.name}, "
                f"and that account may not enter {folder.parent}",
                hint="Choose a folder that every user can reach, such as one directly in /tmp.",
            )
        folder.chmod(0o700 if account is None else 0o755)
        os.close(os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigurationError(
            f"cannot use {folder} for the embedded PostgreSQL: {error.strerror}",
            hint="Choose another folder: TREADLE_DATA_DIR=...",
        ) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a claimed folder; the lock ends with the process at the latest."""
    import fcntl

    with (folder / _LOCK).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def give_folder(folder: Path, account: Account | None) -> Path:
    """Create a folder that is private to the account of the server, or check that it is."""
    owner = os.geteuid() if account is None else account.uid
    try:
        folder.mkdir(mode=0o700)
        if account is not None:
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    except FileExistsError:
        pass
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != owner or info.st_mode & 0o077:
        raise ConfigurationError(f"{folder} is not a private folder of uid {owner}")
    return folder


def give_file(path: Path, account: Account | None) -> Path:
    """Create an empty file that the account of the server can append to."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    if account is not None:
        os.fchown(handle, account.uid, account.gid)
    os.close(handle)
    return path


def socket_folder(folder: Path, account: Account | None) -> Path:
    """Return the folder of the socket: inside `folder`, or a temporary one with a short path."""
    if _fits(folder / "run"):
        return folder / "run"
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    short = temp_folder(account) / f"treadle-{os.geteuid()}-{digest}"
    if not _fits(short):
        raise ConfigurationError(f"{folder} is too long for a socket, and so is {short}")
    return short


def temp_folder(account: Account | None) -> Path:
    """Return a temporary folder that the account can enter."""
    temp = Path(tempfile.gettempdir()).resolve()
    return temp if can_enter(temp, account) else Path("/tmp")


def reachable_install(bindir: Path, folder: Path, account: Account | None) -> Path:
    """Return a folder of programs that the account can run: `bindir`, or a copy of its wheel."""
    try:
        version = server_version(bindir, account)
    except PermissionError:
        version = None
    if version is not None:
        return bindir

    prefix = bindir.parent
    libs = prefix.parent.with_name(f"{prefix.parent.name}.libs")
    copy = folder / f"postgres-{server_version(bindir, None)}"
    if not copy.exists():
        new = folder / f"{copy.name}.new"
        shutil.rmtree(new, ignore_errors=True)
        for part in ("bin", "lib", "share"):
            shutil.copytree(prefix / part, new / prefix.parent.name / prefix.name / part)
        if libs.is_dir():  # the programs of a repaired Linux wheel load libpq from there
            shutil.copytree(libs, new / libs.name)
        _make_readable(new)
        new.rename(copy)
    return copy / prefix.parent.name / prefix.name / "bin"


def server_version(bindir: Path, account: Account | None) -> str:
    """Return the version of the server programs, such as 18.4; OSError if they cannot be run."""
    done = run_as(account, [str(bindir / "postgres"), "--version"])
    found = re.search(r"\(PostgreSQL\) (\S+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise ConfigurationError(f"{bindir / 'postgres'} does not run: {done.stderr.strip()}")
    return found.group(1)


def _make_parents(folder: Path, account: Account | None) -> None:
    missing = [part for part in folder.parents if not part.exists()]
    for part in reversed(missing):
        part.mkdir(exist_ok=True)
        if account is not None:
            part.chmod(0o755)  # a strict umask must not lock the account out of a new folder


def _fits(folder: Path) -> bool:
    plain = re.fullmatch(r"[\w./+-]+", str(folder), re.ASCII)
    return plain is not None and len(os.fsencode(folder)) <= _SOCKET_DIR_BYTES


def _make_readable(tree: Path) -> None:
    for root, _, files in os.walk(tree):
        Path(root).chmod(0o755)
        for name in files:
            path = Path(root, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444 | (path.stat().st_mode & 0o100) >> 2)
