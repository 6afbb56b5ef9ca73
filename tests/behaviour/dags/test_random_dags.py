"""Hundreds of random DAGs with eight workers: all of them end, and every count is right.

A round is random by its seed, which is the id of the test; how the sessions interleave is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from psycopg.errors import SerializationFailure

from tests.drivers.dag_faults import faults, unended
from tests.drivers.engine import Connection, Driver, Record
from tests.drivers.races import together
from tests.drivers.random_dags import WORKERS, Chaos

T = TypeVar("T")

ROUNDS, DAGS = 10, 30


@pytest.mark.requirement("F4")
@pytest.mark.requirement("F5")
@pytest.mark.requirement("F6")
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_dags_end_whatever_workers_and_people_do(driver: Driver, seed: int) -> None:
    chaos = Chaos(seed)
    chaos.build(driver, DAGS, largest=200 if seed % 3 == 0 else None)
    assert faults(driver) == []

    claimed = together(driver, WORKERS + 1, chaos.run)

    assert faults(driver) == []
    assert unended(driver) == {}
    assert driver.rows("select id from treadle.dags where ended_at is null") == []
    assert sum(claimed[:WORKERS]) > 100


class Stubborn(Driver):
    """A session of another isolation that repeats a call until it is not refused with 40001."""

    level = ""

    def __init__(self, url: str, connect: Callable[[], Connection]) -> None:
        super().__init__(url, connect)
        super().rows(f"set default_transaction_isolation = '{self.level}'")

    def another(self) -> Stubborn:
        return type(self)(self.url, self.connect)

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return _repeat(super().rows, query, *parameters)

    def records(self, query: str, *parameters: object) -> list[Record]:
        return _repeat(super().records, query, *parameters)


def _repeat(call: Callable[..., T], *arguments: object) -> T:
    while True:
        try:
            return call(*arguments)
        except SerializationFailure:
            continue


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_random_dags_end_when_all_callers_are_stricter(driver: Driver, level: str) -> None:
    chaos = Chaos(7)
    chaos.build(driver, 12)
    kind = type("Strict", (Stubborn,), {"level": level})
    together(kind(driver.url, driver.connect), WORKERS + 1, chaos.run)

    assert faults(driver) == []
    assert unended(driver) == {}
