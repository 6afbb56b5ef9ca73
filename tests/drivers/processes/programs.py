"""Run `treadle` as a program and as any user, and list what it leaves behind."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Self

import pytest

import treadle
from treadle.db.embedded import EmbeddedServer
from treadle.db.embedded import account as embedded_account

WITHIN_S = 180.0
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = (sys.executable, "-m", "treadle")


@contextmanager
def data_folder() -> Iterator[Path]:
    """A short path for an embedded server, or for a home with one; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="td-")).resolve()
    try:
        yield folder
    finally:
        for place in (folder, *folder.glob("treadle/*")):
            if (server := EmbeddedServer(place).pid) is not None:
                os.kill(server, signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """The environment of a user with nothing configured but the folder."""
    kept = {name: value for name, value in os.environ.items() if "TREADLE" not in name}
    kept.pop("DATABASE_URL", None)
    return {**kept, "TREADLE_DATA_DIR": str(folder), **extra}


def run(command: str | tuple[str, ...], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run to the end; a text goes through the shell, as a person types it."""
    shell = isinstance(command, str)
    return subprocess.run(
        command, shell=shell, env=env, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S
    )


class Program:
    """`treadle` at work, and the lines it has written; it does not outlive its block."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str],
        program: Sequence[str] = PROGRAM,
        cwd: Path | str = ROOT,
        # Any: the account that it runs as.
        **options: Any,
    ) -> None:
        self.lines: list[str] = []
        self._queue: Queue[str | None] = Queue()
        self.process = subprocess.Popen(
            [*program, *arguments], env=env, cwd=cwd,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            # A test failed: let it stop its children.
            self.process.terminate()
            self.process.wait(timeout=WITHIN_S)

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for a line that matches."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                line = None
            if line is None:
                raise AssertionError(f"no line with {pattern!r} in:\n" + "".join(self.lines))
            if found := re.search(pattern, line):
                return found

    def find(self, pattern: str) -> re.Match[str]:
        """The first line of all that matches; waits until there is one."""
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found
            time.sleep(0.02)
        raise AssertionError(f"no line with {pattern!r} in:\n" + "".join(self.lines))

    def end(self, number: int) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=WITHIN_S)
        while self._queue.get(timeout=WITHIN_S) is not None:
            pass
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._queue.put(line)
        self._queue.put(None)


def left_running(folder: Path) -> list[str]:
    """The processes that still have this folder in their environment, and its server."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    server = EmbeddedServer(folder).pid
    return [*found, f"postgres {server}"] if server is not None else found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def plain_user() -> tuple[list[str], dict[str, str], Callable[[Path], None], dict[str, object]]:
    """How to run treadle as an unprivileged user: program, environment, chown, options."""
    account = embedded_account.server_account()
    if account is None:
        return [*PROGRAM], {}, lambda _: None, {}
    own = Path(sys.executable).resolve()
    packages = [str(Path(treadle.__file__).parents[1])]
    packages += [path for path in sys.path if path.endswith("-packages")]
    python: str | None = sys.executable
    if not embedded_account.can_enter(own.parent, account):
        # The same Python from the system, with our packages.
        name = f"python3.{sys.version_info.minor}"
        python = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if python is None or not all(
        embedded_account.can_enter(Path(path), account) for path in packages
    ):
        pytest.skip("no Python and packages here that an unprivileged account can reach")
    return (
        [python, "-m", "treadle"],
        {"PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        lambda folder: os.chown(folder, account.uid, account.gid),
        {"user": account.uid, "group": account.gid, "extra_groups": []},
    )


def next_commands(output: str) -> list[str]:
    """The commands that the demo tells people to try."""
    after = output.split("== Next", 1)[1].splitlines()
    return [line.strip() for line in after if line.strip() and not line.strip().startswith("#")]


def arguments(command: str) -> list[str]:
    """The words behind the program's name."""
    words = shlex.split(command)
    return words[words.index("treadle") + 1 :] if "treadle" in words else words[-1:]
