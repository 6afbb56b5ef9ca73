"""Two sessions at once: one holds its locks until the other waits for them."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from tests.drivers.engine import Driver

T = TypeVar("T")


def while_held(
    first: Driver,
    hold: Callable[[Driver], object],
    call: Callable[[Driver], T],
    *,
    end: str = "commit",
    waits: bool = True,
) -> T:
    """Run `call` in a second session while `hold` of the first is not committed yet.

    `call` must wait for the first session; then that transaction ends and `call` continues. With
    `waits=False` it may also return before.
    """
    second, judge = first.another(), first.another()
    first.rows("begin")
    hold(first)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(call, second)
        try:
            while not judge.value(
                "select %s = any (pg_blocking_pids(%s))",
                first.conn.info.backend_pid,
                second.conn.info.backend_pid,
            ):
                if waiting.done():
                    assert not waits, f"it did not wait: {waiting.result()}"
                    break
        finally:
            first.rows(end)
        return waiting.result(timeout=30)


def together(driver: Driver, count: int, call: Callable[[Driver, int], T]) -> list[T]:
    """Run `call` in a number of sessions concurrently, each with its number."""
    sessions = [driver.another() for _ in range(count)]
    gate = Barrier(count)

    def run(session: Driver, number: int) -> T:
        gate.wait(timeout=30)
        return call(session, number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, sessions, range(count)))


def flat(lists: Iterable[Iterable[T]]) -> list[T]:
    """All items of some lists as one."""
    return [item for items in lists for item in items]
