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
    bool, typer.Option("--quick", help="Use small sizes, for a rough and fast result.")
]
Peers = Annotated[
    str, typer.Option(help="Peers from bench/peers.txt, comma separated; '' for none.")
]
Everyone = Annotated[bool, typer.Option("--all", help="Use every peer of bench/peers.txt.")]


@app.callback()
def main() -> None:
    """Measure treadle against other queues and against its own goals; peers is the default.

    Example: python -m bench peers --peers pgqueuer --slots 100 --rounds 5
    """


@app.command()
def peers(
    *,
    peers: Peers = compare.DEFAULT_PEERS,
    everyone: Everyone = False,
    n: Annotated[
        int | None, typer.Option("--n", min=100, help="Jobs per measurement; default 20000.")
    ] = None,
    slots: Annotated[str, typer.Option(help="Slots of the worker, comma separated.")] = "100,10",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Number of measurements of each; default 3.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
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
    """Measure a claim with a million tasks ready, ended, in many lanes, under a snapshot."""
    from bench.claims import claims

    million, repeats, hold_s = (50_000, 60, 10.0) if quick else (1_000_000, 300, 60.0)
    claims(million=million, repeats=repeats, hold_s=hold_s)


@app.command()
def latency(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Measure the time from enqueue to the start of the handler on an idle worker."""
    from bench.latency import latency

    latency(chosen(peers, everyone=False), samples=50 if quick else 500)


@app.command()
def idle(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Count the statements per second of an idle worker."""
    from bench.idle import idle

    idle(chosen(peers, everyone=False), seconds=10.0 if quick else 30.0)


@app.command()
def memory(*, peers: Peers = "pgqueuer,procrastinate", quick: Quick = False) -> None:
    """Measure the peak memory of a worker with 100 slots."""
    from bench.memory import memory

    memory(chosen(peers, everyone=False), n=2_000 if quick else 20_000)


@app.command()
def lifecycle(*, quick: Quick = False) -> None:
    """Measure the lifecycle of tasks inside the server, which is the upper limit of a worker."""
    from bench.lifecycle import lifecycle

    lifecycle(n=5_000 if quick else 50_000)


@app.command()
def dags(
    *,
    sizes: Annotated[
        str | None, typer.Option(help="Tasks of the two DAGs; default 1000,10000.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Number of measurements of each; default 3.")
    ] = None,
    quick: Quick = False,
) -> None:
    """Compare large DAGs with small ones: create, finish, complete one task."""
    from bench.dags import dags

    small, large = numbers(sizes or ("200,2000" if quick else "1000,10000"))
    rounds = rounds or (1 if quick else 3)
    dags(sizes=(small, large), rounds=rounds, repeats=200 if quick else 1_000)


@app.command()
def http(
    *,
    connections: Annotated[int, typer.Option(min=1, max=1000, help="Client connections.")] = 16,
    pool: Annotated[
        int | None, typer.Option(min=2, max=100, help="Pool size of both servers.")
    ] = None,
    fsync: Annotated[
        bool, typer.Option(help="Turn it off to measure the servers without the disk.")
    ] = True,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Number of measurements of each; default 5.")
    ] = None,
    quick: Quick = False,
) -> None:
    """Compare the HTTP server with a minimal one that runs `select 1` for each request."""
    from bench.http import http
    from treadle.settings import Settings

    seconds, default = (1.0, 1) if quick else (4.0, 5)
    pool = pool or Settings.model_fields["server_pool_size"].default
    rounds = rounds or default
    http(connections=connections, pool=pool, fsync=fsync, seconds=seconds, rounds=rounds)


@app.command()
def retention(*, quick: Quick = False) -> None:
    """Compare a worker while a million ended tasks are pruned with the same worker alone."""
    from bench.retention import retention

    million, moment_s, before = (30_000, 1.0, 2) if quick else (1_000_000, 3.0, 10)
    retention(million=million, moment_s=moment_s, before=before)


def numbers(words: str) -> tuple[int, int]:
    try:
        small, large = (int(word) for word in words.split(","))
    except ValueError:
        raise typer.BadParameter("pass two numbers with a comma, such as 1000,10000") from None
    return small, large


def chosen(names: str, everyone: bool) -> list[str]:
    return list(catalogue()) if everyone else [name for name in names.split(",") if name]


def with_default(words: list[str]) -> list[str]:
    """Add the default command, so that `make bench ARGS=--quick` works."""
    if words[:1] == ["--help"] or (words and not words[0].startswith("-")):
        return words
    return ["peers", *words]


if __name__ == "__main__":
    # On SIGTERM, stop the server that this process has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app(with_default(sys.argv[1:]), prog_name="python -m bench")
    except BenchError as error:
        fail(str(error))
