"""Start HTTP servers as processes and read their resource usage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.common import ROOT, BenchError
from bench.engine import Engine

START_S = 30.0


@dataclass(frozen=True)
class Place:
    """A running server and its token."""

    url: str
    process: subprocess.Popen[str]
    token: str = ""

    def cpu_s(self) -> float:
        """The CPU time of the process, if the system reports it."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        fields = stat.read_text().rpartition(")")[2].split() if stat.exists() else ["0"] * 13
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """The memory of the process, if the system reports it."""
        statm = Path(f"/proc/{self.process.pid}/statm")
        pages = int(statm.read_text().split()[1]) if statm.exists() else 0
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


@contextmanager
def treadle_server(url: str, engine: Engine, *, pool: int) -> Iterator[Place]:
    """Run `treadle server` with a token and without a rate limit."""
    made = engine.conn.execute(
        """select treadle.create_token('bench', '{"scopes": ["enqueue", "work"]}')"""
    ).fetchone()
    settings = {
        "TREADLE_RATE_PER_S": "0",
        "TREADLE_SERVER_POOL_SIZE": str(pool),
        "TREADLE_LOG_FORMAT": "json",
    }
    words = [sys.executable, "-m", "treadle", "server", "--port", "0", "--database-url", url]
    with started(*words, **settings) as place:
        yield Place(place.url, place.process, made[0] if made else "")


@contextmanager
def started(*words: str, **settings: str) -> Iterator[Place]:
    """Run a server process until the block ends; it prints its URL."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")}
    process = subprocess.Popen(
        words, cwd=ROOT, env={**kept, **settings}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    watchdog = threading.Timer(START_S, process.kill)
    watchdog.start()
    try:
        url = address(process)
        watchdog.cancel()
        # Discard the rest of its output, so that the process never blocks.
        threading.Thread(target=drain, args=(process,), daemon=True).start()
        yield Place(url, process)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said = line
        if '"url"' in line:
            found: dict[str, str] = json.loads(line.removeprefix("BENCH "))
            return found["url"]
    raise BenchError(f"a server did not start: {said.strip()[:300]}")


def drain(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for _ in process.stdout:
        pass
