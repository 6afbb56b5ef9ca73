"""Stored replies to requests with an idempotency key."""

from typing import Any

from tests.drivers.engine import Driver

Row = tuple[Any, ...]
ASKED = ("k", "me", "POST /x", "hash")


def begin(driver: Driver, *asked: str) -> list[Row]:
    return driver.rows("select * from treadle.begin_reply(%s, %s, %s, %s)", *(asked or ASKED))
