"""The command line of the benchmarks: `python -m bench [peers|claims|latency|...]`."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from bench import compare
from bench.common import BenchError, fail
from bench.install import catalogue

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Quick = Annotated[
    bool, typer.Option("--quick", help="Small numbers: does it run, roughly how fast.")
]
Peers = Annotated[str, typer.Option(help="Names from bench/peers.txt, with commas; '' for none.")]
Everyone = Annotated[bool, typer.Option("--all", help="Every peer of bench/peers.txt.")]


@app.callback()
def main() -> None:
    """Measure treadle, beside its peers and against its own goals; peers is the default.

    Example: python -m bench peers --peers pgqueuer --slots 100 --rounds 5
    """


@app.command()
def peers(
    *,
    peers: Peers = compare.DEFAULT_PEERS,
    everyone: Everyone = False,
    n: Annotated[
        int | None, typer.Option("--n", min=100, help="Jobs per measurement; 20000.")
    ] = None,
    slots: Annotated[str, typer.Option(help="Slots of the worker, with commas.")] = "100,10",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each is measured; 3.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table for the docs.")] = False,
    quick: Quick = False,
) -> None:
    """Compare no-op throughput and bulk enqueue with other queues on PostgreSQL."""
    compare.compare(
        chosen(peers, everyone),
        n=n or (2_000 if quick else 20_000),
        slots=[int(count) for count in slots.split(",")],
        rounds=rounds or (1 if quick else 3),
        style="json" if json else "markdown" if markdown else "table",
    )


@app.command()
def claims(*, quick: Quick = False) -> None:
    """Cost of a claim with a million tasks ready, finished, in many lanes, under a snapshot."""
    from bench.claims import claims

    million, repeats, hold_s = (50_000, 60, 10.0) if quick else (1_000_000, 300, 60.0)
    claims(million=million, repeats=repeats, hold_s=hold_s)


@app.command()
def latency(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Time from enqueue to handler start on an idle worker."""
    from bench.latency import latency

    latency(chosen(peers, everyone=False), samples=50 if quick else 500)


@app.command()
def idle(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Statements per second of a worker that has nothing to do."""
    from bench.idle import idle

    idle(chosen(peers, everyone=False), seconds=10.0 if quick else 30.0)


@app.command()
def memory(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Peak memory of a worker with 100 slots."""
    from bench.memory import memory

    memory(chosen(peers, everyone=False), n=2_000 if quick else 20_000)


@app.command()
def lifecycle(*, quick: Quick = False) -> None:
    """The lifecycle of tasks inside the server, with no client: the ceiling of a worker."""
    from bench.lifecycle import lifecycle

    lifecycle(n=5_000 if quick else 50_000)


@app.command()
def dags(
    *,
    sizes: Annotated[
        str | None, typer.Option(help="Tasks of the small and of the large; 1000,10000.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each DAG is made and finished; 3.")
    ] = None,
    quick: Quick = False,
) -> None:
    """Cost of large DAGs against small ones: to make, to finish, to complete one task."""
    from bench.dags import dags

    small, large = numbers(sizes or ("200,2000" if quick else "1000,10000"))
    rounds = rounds or (1 if quick else 3)
    dags(sizes=(small, large), rounds=rounds, repeats=200 if quick else 1_000)


@app.command()
def http(
    *,
    connections: Annotated[int, typer.Option(min=1, max=1000, help="Kept open, and busy.")] = 16,
    pool: Annotated[
        int | None, typer.Option(min=2, max=100, help="Of both servers; what treadle has.")
    ] = None,
    fsync: Annotated[
        bool, typer.Option(help="Without, only the servers themselves are measured.")
    ] = True,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each is measured; 5.")
    ] = None,
    quick: Quick = False,
) -> None:
    """The HTTP server beside a bare one with a `select 1` for each request."""
    from bench.http import http
    from treadle.settings import Settings

    seconds, default = (1.0, 1) if quick else (4.0, 5)
    pool = pool or Settings.model_fields["server_pool_size"].default
    rounds = rounds or default
    http(connections=connections, pool=pool, fsync=fsync, seconds=seconds, rounds=rounds)


@app.command()
def retention(*, quick: Quick = False) -> None:
    """A worker while a million finished tasks are pruned, against the same worker alone."""
    from bench.retention import retention

    million, moment_s, before = (30_000, 1.0, 2) if quick else (1_000_000, 3.0, 10)
    retention(million=million, moment_s=moment_s, before=before)


def numbers(words: str) -> tuple[int, int]:
    try:
        small, large = (int(word) for word in words.split(","))
    except ValueError:
        raise typer.BadParameter("two numbers with a comma, as in 1000,10000") from None
    return small, large


def chosen(names: str, everyone: bool) -> list[str]:
    return list(catalogue()) if everyone else [name for name in names.split(",") if name]


def with_default(words: list[str]) -> list[str]:
    """Without a command it is peers, so that `make bench ARGS=--quick` works."""
    if words[:1] == ["--help"] or (words and not words[0].startswith("-")):
        return words
    return ["peers", *words]


if __name__ == "__main__":
    # Told to end, it stops the server that it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app(with_default(sys.argv[1:]), prog_name="python -m bench")
    except BenchError as error:
        fail(str(error))
