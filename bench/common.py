"""What every benchmark needs: a server, a fresh database, statistics, and a place for results."""

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

# Nothing is cut where nobody looks at it in a window.
out = Console(width=None if sys.stdout.isatty() else 140)
notes = Console(stderr=True, highlight=False)


class BenchError(Exception):
    """Something that the person at the terminal has to know; shown without a traceback."""


@dataclass(frozen=True)
class Server:
    """One PostgreSQL server for a whole run; every measurement gets its own database."""

    url: str

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """An empty database, dropped afterwards; the value is its URL."""
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
        """Put together by hand: urlunsplit drops the slashes before an empty host."""
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{quote(database)}{query}"

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url, autocommit=True)

    def settle(self) -> None:
        """Write out what the last measurement left behind, so that the next does not pay for it."""
        with self.connect() as conn, suppress(psycopg.errors.InsufficientPrivilege):
            conn.execute("checkpoint")

    def facts(self) -> dict[str, Any]:
        """What the figures of a run depend on."""
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
    """The server of TREADLE_BENCH_DATABASE_URL, or a new embedded one with default settings."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    url = os.environ.get(URL_VARIABLE)
    if url:
        yield Server(url)
        return
    folder = default_data_dir().with_name("bench")
    if (running := running_server(folder)) is not None:
        raise BenchError(f"a benchmark server runs already in {folder} (pid {running.pid})")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with EmbeddedServer(folder) as server:
            yield Server(server.url())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def analyze(url: str) -> None:
    """Fresh statistics: what autovacuum would do a minute later, at the same moment for all."""
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
    """The smallest value that at least `percent` of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100).__int__() - 1)]


class Journal:
    """The raw measurements of a run, a JSON line each, in a file of its own."""

    def __init__(self, command: str) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self.path = RESULTS / f"{command}-{moment}.jsonl"

    def add(self, **fields: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(fields) + "\n")


def verdict(value: float, limit: float) -> str:
    """A figure beside its goal, for tables."""
    return "[green]reached[/]" if value <= limit else "[red]missed[/]"


def show(table: Table, problems: dict[str, str], journal: Journal) -> None:
    """A table, and below it what could not be measured; that of treadle itself is an error."""
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
