"""The load of an idle worker on the server: statements and transactions per second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from rich.table import Table

from bench.common import OWN, BenchError, Journal, Server, bench_server, notes, show, verdict
from bench.runner import ask, serving
from bench.wire import counted

SETTLE_S = 10.0
GOAL_PER_S = 0.5


def idle(peers: Sequence[str], *, seconds: float) -> None:
    """Count the statements of each idle worker."""
    journal = Journal("idle")
    problems: dict[str, str] = {}
    table = Table(title=f"an idle worker, {seconds:.0f} s after {SETTLE_S:.0f} s to settle")
    for head in ("system", "statements/s", "transactions/s", f"goal: at most {GOAL_PER_S}"):
        table.add_column(head, justify="left" if head == "system" else "right")
    with bench_server() as server:
        journal.add(kind="run", **server.facts(), seconds=seconds)
        for name in (OWN, *peers):
            notes.print(f"idle: {name}")
            try:
                statements, transactions = measure(server, name, seconds=seconds)
            except BenchError as error:
                problems[name] = str(error)
                continue
            journal.add(
                kind="measurement",
                system=name,
                statements_per_s=statements,
                transactions_per_s=transactions,
            )
            goal = verdict(statements, GOAL_PER_S) if name == OWN else ""
            table.add_row(name, f"{statements:.2f}", f"{transactions:.2f}", goal)
    show(table, problems, journal)


def measure(server: Server, name: str, *, seconds: float) -> tuple[float, float]:
    """Statements per second on the wire, and transactions per second by the server's count.

    The count of the server includes autovacuum, so it can be higher.
    """
    with server.database(name) as url, counted(url) as (proxied, counter):
        ask(name, "enqueue", url=url, n=0)
        with serving(name, url=proxied):
            time.sleep(SETTLE_S)
            before, commits = counter.statements, transactions_of(server, url)
            if before == 0:
                raise BenchError(f"{name}: its worker did not come through the counter")
            time.sleep(seconds)
            after, commits = counter.statements, transactions_of(server, url) - commits
    return (after - before) / seconds, commits / seconds


def transactions_of(server: Server, url: str) -> int:
    """Read the counters from another database, so that the query itself does not count."""
    query = "select xact_commit + xact_rollback from pg_stat_database where datname = %s"
    with server.connect() as conn:
        row = conn.execute(query, (urlsplit(url).path.lstrip("/"),)).fetchone()
    return int(row[0]) if row else 0
