"""Run the driver of a peer in its own process and read its result."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import install
from bench.common import ROOT, BenchError

TIMEOUT_S = 600.0


class PeerFailed(BenchError):
    """The driver ended without a result."""


def ask(name: str, verb: str, **order: Any) -> dict[str, Any]:
    """Run one command of a driver to its end."""
    words, env = prepare(name, verb, order)
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{name} {verb}: no answer within {TIMEOUT_S:.0f} s") from None
    answers = [line for line in done.stdout.splitlines() if line.startswith("BENCH ")]
    if not answers:
        raise PeerFailed(f"{name} {verb}: {last_line(done.stderr)} (exit {done.returncode})")
    return read(answers[-1])


@contextmanager
def serving(name: str, **order: Any) -> Iterator[Serving]:
    """Run a worker until the block ends."""
    words, env = prepare(name, "serve", order)
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    worker = Serving(name, process)
    watchdog = threading.Timer(TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        worker.next_answer()
        yield worker
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


class Serving:
    """A running worker; `stop` ends it and returns its result."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self.process = process

    def stop(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.next_answer()

    def next_answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("BENCH "):
                return read(line)
        raise PeerFailed(f"{self.name} serve: ended without an answer")


def prepare(name: str, verb: str, order: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    words, modules = install.command(name)
    order = {"n": 0, "slots": 10, **order, "modules": str(modules)}
    return [*words, verb], {**os.environ, "BENCH": json.dumps(order)}


def read(line: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(line.removeprefix("BENCH "))
    return answer


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
