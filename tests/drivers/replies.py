"""Stored replies to requests with an idempotency key."""

from typing import Any

import psycopg

from tests.drivers.engine import Driver

Row = tuple[Any, ...]
ASKED = ("k", "me", "POST /x", "hash")


def begin(driver: Driver, *asked: str) -> list[Row]:
    """The stored answer, if there is one; a problem is raised like an error of the server."""
    query = "select * from treadle.begin_reply(%s, %s, %s, %s)"
    rows = driver.rows(query, *(asked or ASKED))
    for *_, problem in rows:
        if problem is not None:
            error = psycopg.DatabaseError(problem["message"])
            error.sqlstate = problem["code"]
            raise error
    return [row[:-1] for row in rows]
