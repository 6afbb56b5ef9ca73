"""The shared parts of benchmarks: a server, databases, statistics and result files."""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import structlog
from psycopg import sql
from rich.console import Console
from rich.table import Table

from treadle.db.embedded import EmbeddedServer, default_data_dir, running_server

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
OWN = "treadle"
URL_VARIABLE = "TREADLE_BENCH_DATABASE_URL"

# Use a fixed width if the output is not a terminal.
out = Console(width=None if sys.stdout.isatty() else 140)
notes = Console(stderr=True, highlight=False)


class BenchError(Exception):
    """An error that is shown without a traceback."""


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server for a whole run; every measurement has its own database."""

    url: str

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """Create an empty database for the block and yield its URL."""
        database = f"treadle_bench_{name}".replace("-", "_")
        drop = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(database))
        with self.connect() as conn:
            conn.execute(drop)
            conn.execute(sql.SQL("create database {}").format(sql.Identifier(database)))
        try:
            yield self.url_of(database)
        finally:
            with self.connect() as conn:
                conn.execute(drop)

    def url_of(self, database: str) -> str:
        """Return the URL of a database; urlunsplit would drop the slashes of an empty host."""
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{quote(database)}{query}"

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url, autocommit=True)

    def settle(self) -> None:
        """Run a checkpoint, so that the next measurement does not include earlier writes."""
        with self.connect() as conn, suppress(psycopg.errors.InsufficientPrivilege):
            conn.execute("checkpoint")

    def facts(self) -> dict[str, Any]:
        """Return the facts that the results depend on."""
        names = ["server_version", "fsync", "synchronous_commit", "full_page_writes"]
        names += ["shared_buffers", "max_wal_size", "autovacuum"]
        with self.connect() as conn:
            settings = {name: conn.execute("select current_setting(%s)", (name,)) for name in names}
            values = {name: row.fetchone() for name, row in settings.items()}
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            **{name: value[0] for name, value in values.items() if value is not None},
        }


@contextmanager
def bench_server() -> Iterator[Server]:
    """Yield the server of TREADLE_BENCH_DATABASE_URL, or a new embedded one."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    url = os.environ.get(URL_VARIABLE)
    if url:
        yield Server(url)
        return
    folder = default_data_dir().with_name("bench")
    if (running := running_server(folder)) is not None:
        raise BenchError(f"a benchmark server already runs in {folder} (pid {running.pid})")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with EmbeddedServer(folder) as server:
            yield Server(server.url())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def analyze(url: str) -> None:
    """Update the statistics, as autovacuum would do later, at the same time for all systems."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("analyze")


@dataclass
class Sample:
    """Repeated measurements of one figure."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return max(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        if not self.values:
            return "-"
        if len(self.values) == 1:
            return f"{self.values[0]:,.0f}"
        spread = (max(self.values) - min(self.values)) / 2 / self.median
        return f"{self.median:,.0f} ±{spread:.0%}"


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100).__int__() - 1)]


class Journal:
    """A file with the raw measurements of a run, one JSON document per line."""

    def __init__(self, command: str) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self.path = RESULTS / f"{command}-{moment}.jsonl"

    def add(self, **fields: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(fields) + "\n")


def verdict(value: float, limit: float) -> str:
    """Return whether a value reaches its goal, for tables."""
    return "[green]reached[/]" if value <= limit else "[red]missed[/]"


def show(table: Table, problems: dict[str, str], journal: Journal) -> None:
    """Print a table and the systems that failed; raise if treadle itself failed."""
    out.print(table)
    for name, problem in problems.items():
        out.print(f"{name}: {problem}", markup=False)
        journal.add(kind="problem", system=name, problem=problem)
    notes.print(f"raw figures: {journal.path}")
    if OWN in problems:
        raise BenchError("treadle itself could not be measured")


def fail(message: str) -> None:
    notes.print(f"[red]error:[/] {message}")
    sys.exit(1)
