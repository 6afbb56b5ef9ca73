"""Concurrent requests share a database call, and each gets its own response."""

import asyncio
from collections.abc import Iterable
from typing import Any

import anyio

from treadle.api.batch import MOST, Batcher
from treadle.errors import InvalidArgument, Unavailable


class Recorder:
    """Answers with the double of each number, when it is let; refuses some of them."""

    def __init__(self, *, refused: Iterable[int] = (), error: Exception | None = None) -> None:
        self.calls: list[list[int]] = []
        self.open = anyio.Event()
        self._came = anyio.Semaphore(0)
        self._refused = set(refused)
        self._error = error or InvalidArgument("not this one")

    async def __call__(self, kind: str, items: list[int]) -> list[int]:
        self.calls.append(items)
        self._came.release()
        await self.open.wait()
        if self._refused & set(items):
            raise self._error
        return [2 * item for item in items]

    async def came(self, more: int) -> None:
        """Wait for more calls; if they do not come, release the waiting ones."""
        try:
            with anyio.fail_after(5):
                for _ in range(more):
                    await self._came.acquire()
        except TimeoutError:
            self.open.set()
            raise


async def asked(share: Batcher[str, int, int], items: list[int], call: Recorder) -> dict[int, Any]:
    """The answers; the first request is sent alone, the others are collected meanwhile."""
    heard: dict[int, Any] = {}

    async def ask(number: int, item: int) -> None:
        try:
            heard[number] = await share("k", item)
        except Exception as error:
            heard[number] = error

    async with anyio.create_task_group() as group:
        for number, item in enumerate(items):
            group.start_soon(ask, number, item)
        await anyio.wait_all_tasks_blocked()
        call.open.set()
    return heard


async def test_requests_that_arrive_during_a_call_share_the_next_one() -> None:
    call = Recorder()
    heard = await asked(Batcher(call, lambda item: None), [1, 2, 3, 4], call)
    assert heard == {0: 2, 1: 4, 2: 6, 3: 8}
    assert call.calls == [[1], [2, 3, 4]]


async def test_one_that_is_refused_does_not_take_the_others_along() -> None:
    call = Recorder(refused={3})
    heard = await asked(Batcher(call, lambda item: None), [1, 2, 3, 4, 5], call)
    assert isinstance(heard.pop(2), InvalidArgument)
    assert heard == {0: 2, 1: 4, 3: 8, 4: 10}


async def test_a_database_that_is_away_is_not_asked_again_for_each() -> None:
    call = Recorder(refused={2, 3}, error=Unavailable("away"))
    heard = await asked(Batcher(call, lambda item: None), [1, 2, 3], call)
    assert [type(heard[number]) for number in (1, 2)] == [Unavailable, Unavailable]
    assert call.calls == [[1], [2, 3]]


async def test_items_of_the_same_name_do_not_go_together() -> None:
    call = Recorder()
    heard = await asked(Batcher(call, lambda item: item), [1, 2, 2, 3], call)
    assert heard == {0: 2, 1: 4, 2: 4, 3: 6}
    assert call.calls == [[1], [2, 3], [2]]


async def test_a_request_that_gives_up_does_not_delay_others() -> None:
    call = Recorder()
    share = Batcher(call, lambda item: None)
    heard: list[int] = []

    async def ask(item: int) -> None:
        heard.append(await share("k", item))

    async with anyio.create_task_group() as group:
        group.start_soon(ask, 1)
        await anyio.wait_all_tasks_blocked()
        with anyio.CancelScope() as given_up:
            async with anyio.create_task_group() as others:
                others.start_soon(ask, 2)
                await anyio.wait_all_tasks_blocked()
                given_up.cancel()
        group.start_soon(ask, 3)
        await anyio.wait_all_tasks_blocked()
        call.open.set()
    assert (heard, call.calls) == ([2, 6], [[1], [3]])


async def test_a_call_for_many_is_not_broken_off_by_one_of_them() -> None:
    call = Recorder()
    share = Batcher(call, lambda item: None)
    heard: list[int] = []

    async def ask(item: int, scope: anyio.CancelScope) -> None:
        with scope:
            heard.append(await share("k", item))

    async with anyio.create_task_group() as group:
        scopes = [anyio.CancelScope() for _ in range(3)]
        for item, scope in enumerate(scopes, 1):
            group.start_soon(ask, item, scope)
            await anyio.wait_all_tasks_blocked()
        call.open.set()
        call.open = anyio.Event()
        await anyio.wait_all_tasks_blocked()
        # The second makes the call for the third, too.
        scopes[1].cancel()
        await anyio.wait_all_tasks_blocked()
        call.open.set()
    assert (sorted(heard)[::2], call.calls) == ([2, 6], [[1], [2, 3]])


async def test_one_that_gives_up_when_it_is_its_turn_passes_it_on() -> None:
    call = Recorder()
    share = Batcher(call, lambda item: None)
    others: list[asyncio.Task[int]] = []

    async def first() -> None:
        await share("k", 1)
        # It was woken to make the next call, and has not run yet.
        others[0].cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await anyio.wait_all_tasks_blocked()
        others += [asyncio.create_task(share("k", item)) for item in (2, 3)]
        await anyio.wait_all_tasks_blocked()
        call.open.set()
    with anyio.fail_after(5):
        assert await others[1] == 6
    assert others[0].cancelled()


async def test_a_slow_call_does_not_delay_the_requests_behind_it() -> None:
    call = Recorder()
    share = Batcher(call, lambda item: item)
    async with anyio.create_task_group() as group:
        for item in (1, 2, 3):
            group.start_soon(share, "k", item)
        await call.came(2)
        # That call takes long, too; when both have ended no request has the turn.
        group.start_soon(share, "k", 4)
        await call.came(1)
        call.open.set()
    assert call.calls == [[1], [2, 3], [4]]
    with anyio.fail_after(5):
        assert await share("k", 5) == 10


async def test_an_error_of_identical_requests_applies_to_all() -> None:
    call = Recorder(refused={3})
    heard = await asked(Batcher(call), [1, 2, 3, 4], call)
    assert [type(heard[number]) for number in (1, 2, 3)] == [InvalidArgument] * 3
    assert call.calls == [[1], [2, 3, 4]]


async def test_a_call_is_not_for_more_than_a_hundred() -> None:
    call = Recorder()
    items = list(range(2 * MOST + 2))
    heard = await asked(Batcher(call, lambda item: None), items, call)
    assert heard == {item: 2 * item for item in items}
    assert [len(each) for each in call.calls] == [1, MOST, MOST, 1]
