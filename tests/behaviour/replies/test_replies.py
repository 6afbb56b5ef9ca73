"""The response to a request with a key is stored with its effect and replayed for a repeat."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.replies import ASKED, begin
from treadle import Treadle
from treadle.db.database import Database
from treadle.db.install import files
from treadle.db.replies import KeyedRequest, StoredResponse
from treadle.errors import InvalidArgument, KeyReused, RequestInFlight, UnknownType

Row = tuple[Any, ...]


def keep(driver: Driver, body: bytes = b"body", *asked: str) -> None:
    driver.rows(
        "select treadle.save_reply(%s, %s, %s, %s, 201, %s, %s)",
        *(asked or ASKED),
        Jsonb({"location": "/x/1"}),
        body,
    )


def refused(driver: Driver, state: str, *asked: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        begin(driver, *asked)
    assert raised.value.sqlstate == state


def test_a_repeat_gets_the_stored_answer(driver: Driver) -> None:
    assert begin(driver) == []
    keep(driver)
    assert begin(driver) == [(201, {"location": "/x/1"}, b"body")]


def test_a_key_is_for_one_request(driver: Driver) -> None:
    keep(driver)
    refused(driver, "TR112", "k", "me", "POST /x", "other")
    refused(driver, "TR112", "k", "me", "POST /y", "hash")


def test_a_key_is_the_callers_own(driver: Driver) -> None:
    keep(driver)
    assert begin(driver, "k", "you", "POST /x", "other") == []
    assert begin(driver, "l", "me", "POST /x", "other") == []


def test_a_request_under_way_is_not_done_twice(driver: Driver) -> None:
    other = driver.another()
    other.rows("set lock_timeout = '2s'")
    with driver.conn.transaction():
        assert begin(driver) == []
        refused(other, "TR113")
        assert begin(other, "l", *ASKED[1:]) == []
        assert begin(other, "k", "you", *ASKED[2:]) == []
        keep(driver)
        refused(other, "TR113")
    assert len(begin(other)) == 1


def test_a_request_begun_again_is_not_done_twice(driver: Driver) -> None:
    """Its key has a row already, without an answer or with one that is too old."""
    assert begin(driver) == []
    assert begin(driver, "k", "you", *ASKED[2:]) == []
    other = driver.another()
    other.rows("set lock_timeout = '2s'")
    with driver.conn.transaction():
        assert begin(driver) == []
        refused(other, "TR113")
        assert begin(other, "k", "you", *ASKED[2:]) == []


def test_a_key_that_was_begun_and_never_answered_is_free(driver: Driver) -> None:
    assert begin(driver) == []

    assert begin(driver, "k", "me", "POST /y", "other") == []


def test_an_answer_that_is_stored_while_its_repeat_looks_for_it_is_found(fresh: Driver) -> None:
    """The lock is free when the repeat comes to it, because the first request has ended."""
    fresh.rows(
        """
        create function public.answer_meanwhile() returns void language sql as $$
          select treadle.save_reply('k', 'me', 'POST /x', 'hash', 201, '{}', 'body')
        $$
        """
    )
    text = files.functions()["lock_reply"]
    held = "begin\n  perform replies.key"
    assert held in text
    planted = text.replace(held, f"begin\n  perform public.answer_meanwhile();{held[5:]}")
    fresh.conn.execute(planted.encode())

    assert begin(fresh) == [(201, {}, b"body")]


def test_a_stored_answer_is_read_without_a_lock(driver: Driver) -> None:
    keep(driver)
    other = driver.another()
    with driver.conn.transaction():
        assert len(begin(driver)) == 1
        assert len(begin(other)) == 1


@pytest.mark.parametrize("missing", ["status", "body"])
def test_an_answer_has_a_status_and_a_body(driver: Driver, missing: str) -> None:
    status, body = (None, b"") if missing == "status" else (200, None)
    with pytest.raises(psycopg.Error) as raised:
        driver.rows(
            "select treadle.save_reply(%s, %s, %s, %s, %s::integer, '{}', %s::bytea)",
            *ASKED,
            status,
            body,
        )
    assert raised.value.sqlstate == "TR001"


def test_what_was_rolled_back_is_not_answered(driver: Driver) -> None:
    with driver.conn.transaction(force_rollback=True):
        assert begin(driver) == []
        keep(driver)
    assert begin(driver.another()) == []


def test_an_answer_is_kept_for_a_day(fresh: Driver) -> None:
    keep(fresh)
    fresh.set_clock(timedelta(hours=23, minutes=59))
    assert len(begin(fresh)) == 1
    fresh.set_clock(timedelta(hours=24))

    assert begin(fresh) == []
    assert begin(fresh, "k", "me", "POST /x", "other") == []
    keep(fresh, b"new", "k", "me", "POST /x", "other")
    assert begin(fresh, "k", "me", "POST /x", "other")[0][2] == b"new"


def test_old_answers_go_when_the_pruner_comes(fresh: Driver) -> None:
    for number in range(5):
        keep(fresh, b"", f"k{number}", *ASKED[1:])
    fresh.set_clock(timedelta(hours=23))
    assert ("replies", 0) in fresh.rows("select * from treadle.prune_other()")
    fresh.set_clock(timedelta(hours=25))
    assert ("replies", 3) in fresh.rows("select * from treadle.prune_other(3)")
    assert fresh.value("select count(*) from treadle.replies") == 2


def test_old_answers_go_as_fast_as_new_ones_come(fresh: Driver) -> None:
    for number in range(5):
        keep(fresh, b"", f"k{number}", *ASKED[1:])
    fresh.set_clock(timedelta(hours=25))
    for number in range(3):
        keep(fresh, b"", f"n{number}", *ASKED[1:])
    assert fresh.value("select count(*) from treadle.replies") == 3


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_has_a_length(driver: Driver, key: str) -> None:
    refused(driver, "TR001", key, *ASKED[1:])


async def test_calls_of_one_transaction_are_done_together_or_not_at_all(
    app: Treadle, driver: Driver
) -> None:
    db = app.db
    asked = KeyedRequest(*ASKED)

    async def twice(inner: Database) -> StoredResponse:
        for type_ in ("code", "nothing-like-it"):
            await inner.tasks.enqueue_batch(
                "default", type_, specs=[b"{}"], options=b"{}", keys=None
            )
        return StoredResponse(201, b"")

    with pytest.raises(UnknownType):
        await db.run_once(asked, twice)

    assert driver.value("select count(*) from treadle.tasks") == 0
    assert driver.value("select count(*) from treadle.replies") == 0


async def test_an_effect_happens_once_for_its_key(app: Treadle, driver: Driver) -> None:
    db = app.db

    async def make(inner: Database) -> StoredResponse:
        [made] = await inner.tasks.enqueue_batch(
            "default", "code", specs=[b"{}"], options=b"{}", keys=None
        )
        return StoredResponse(201, str(made.id).encode(), {"location": "/x"})

    first = await db.run_once(KeyedRequest(*ASKED), make)
    again = await db.run_once(KeyedRequest(*ASKED), make)

    assert (first.replayed, again.replayed) == (False, True)
    assert (again.status, again.body, again.headers) == (201, first.body, {"location": "/x"})
    assert driver.value("select count(*) from treadle.tasks") == 1
    with pytest.raises(KeyReused):
        await db.run_once(KeyedRequest("k", "me", "POST /x", "other"), make)


async def test_a_deadlock_repeats_the_whole_transaction(app: Treadle, driver: Driver) -> None:
    db = app.db
    tries = 0

    async def make(inner: Database) -> StoredResponse:
        nonlocal tries
        tries += 1
        await inner.tasks.enqueue_batch("default", "code", specs=[b"{}"], options=b"{}", keys=None)
        if tries < 3:
            await inner.calls.call("do $$ begin raise sqlstate '40P01'; end $$")
        return StoredResponse(201, b"")

    await db.run_once(KeyedRequest(*ASKED), make)

    assert tries == 3
    assert driver.value("select count(*) from treadle.tasks") == 1


async def test_a_concurrent_caller_returns_at_once(app: Treadle) -> None:
    db = app.db

    async def make(inner: Database) -> StoredResponse:
        with pytest.raises(RequestInFlight):
            await db.run_once(KeyedRequest(*ASKED), make)
        return StoredResponse(200, b"")

    await db.run_once(KeyedRequest(*ASKED), make)


async def test_an_answer_that_cannot_be_kept_is_an_error(app: Treadle, driver: Driver) -> None:
    db = app.db

    async def make(inner: Database) -> StoredResponse:
        await inner.tasks.enqueue_batch("default", "code", specs=[b"{}"], options=b"{}", keys=None)
        return StoredResponse(600, b"")

    with pytest.raises(InvalidArgument):
        await db.run_once(KeyedRequest(*ASKED), make)
    assert driver.value("select count(*) from treadle.tasks") == 0
