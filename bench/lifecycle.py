"""The lifecycle of no-op tasks inside the server: claim, commit, complete, commit, 200 at a time.

No client, handlers or network: this is the cost of treadle's SQL, and the upper limit of a worker.
"""

from __future__ import annotations

import psycopg
from rich.table import Table

from bench.common import BenchError, Journal, Server, bench_server, notes, out
from bench.engine import LIFE_BATCH, Engine


def measure(server: Server, *, n: int) -> dict[str, float]:
    """Tasks per second, enqueued and completed, in a new database."""
    with server.database("lifecycle") as url:
        server.settle()
        try:
            engine = Engine(url)
            enqueue_s = engine.enqueue(n)
            engine.conn.execute("analyze")
            live_s = engine.live(n)
            engine.close()
        except psycopg.Error as error:
            raise BenchError(str(error).partition("\n")[0]) from error
    return {"enqueue_per_s": n / enqueue_s, "process_per_s": n / live_s}


def lifecycle(*, n: int) -> None:
    """Measure once and print."""
    journal = Journal("lifecycle")
    with bench_server() as server:
        journal.add(kind="run", **server.facts(), n=n)
        rates = measure(server, n=n)
    journal.add(kind="measurement", **rates)
    table = Table(title=f"in-server ceiling, {n:,} no-op tasks, one session")
    table.add_column("what")
    table.add_column("tasks/s", justify="right")
    table.add_row("enqueue, batches of 1,000", f"{rates['enqueue_per_s']:,.0f}")
    table.add_row(f"claim and complete, {LIFE_BATCH} a time", f"{rates['process_per_s']:,.0f}")
    out.print(table)
    notes.print(f"raw figures: {journal.path}")
