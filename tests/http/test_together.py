"""Requests that come at the same time share a call, and each hears its own answer."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx2
import pytest

from tests.http.support import Conn
from treadle.api.together import MOST, Together
from treadle.errors import InvalidArgument, Unavailable

MANY = 40


class Recorder:
    """Answers with the double of each number, when it is let; refuses some of them."""

    def __init__(self, *, refused: Iterable[int] = (), error: Exception | None = None) -> None:
        self.calls: list[list[int]] = []
        self.open = anyio.Event()
        self._refused = set(refused)
        self._error = error or InvalidArgument("not this one")

    async def __call__(self, kind: str, items: list[int]) -> list[int]:
        self.calls.append(items)
        await self.open.wait()
        if self._refused & set(items):
            raise self._error
        return [2 * item for item in items]


async def asked(share: Together[str, int, int], items: list[int], call: Recorder) -> dict[int, Any]:
    """What each heard; the first goes alone, the others gather meanwhile."""
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


async def test_what_comes_while_a_call_is_under_way_goes_together() -> None:
    call = Recorder()
    heard = await asked(Together(call, lambda item: None), [1, 2, 3, 4], call)
    assert heard == {0: 2, 1: 4, 2: 6, 3: 8}
    assert call.calls == [[1], [2, 3, 4]]


async def test_one_that_is_refused_does_not_take_the_others_along() -> None:
    call = Recorder(refused={3})
    heard = await asked(Together(call, lambda item: None), [1, 2, 3, 4, 5], call)
    assert isinstance(heard.pop(2), InvalidArgument)
    assert heard == {0: 2, 1: 4, 3: 8, 4: 10}


async def test_a_database_that_is_away_is_not_asked_again_for_each() -> None:
    call = Recorder(refused={2, 3}, error=Unavailable("away"))
    heard = await asked(Together(call, lambda item: None), [1, 2, 3], call)
    assert [type(heard[number]) for number in (1, 2)] == [Unavailable, Unavailable]
    assert call.calls == [[1], [2, 3]]


async def test_items_of_the_same_name_do_not_go_together() -> None:
    call = Recorder()
    heard = await asked(Together(call, lambda item: item), [1, 2, 2, 3], call)
    assert heard == {0: 2, 1: 4, 2: 4, 3: 6}
    assert call.calls == [[1], [2, 3], [2]]


async def test_one_that_gives_up_holds_up_nobody() -> None:
    call = Recorder()
    share = Together(call, lambda item: None)
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
    share = Together(call, lambda item: None)
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
    share = Together(call, lambda item: None)
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


async def test_a_call_is_not_for_more_than_a_hundred() -> None:
    call = Recorder()
    items = list(range(2 * MOST + 2))
    heard = await asked(Together(call, lambda item: None), items, call)
    assert heard == {item: 2 * item for item in items}
    assert [len(each) for each in call.calls] == [1, MOST, MOST, 1]


def test_many_at_once_are_all_stored_and_the_bad_ones_refused(
    http: httpx2.Client, sql: Conn
) -> None:
    def post(number: int) -> int:
        spec: dict[str, Any] = {"n": number}
        if number % 10 == 0:
            spec["big"] = "x" * 1_100_000
        body = {"type": "code", "spec": spec}
        return http.post("/v1/tasks", json=body).status_code

    with ThreadPoolExecutor(16) as threads:
        said = Counter(threads.map(post, range(MANY)))

    assert said == {201: MANY - MANY // 10, 413: MANY // 10}
    stored = sql.execute("select array_agg((spec ->> 'n')::int) from treadle.tasks").fetchone()
    assert stored is not None
    assert sorted(stored[0]) == [number for number in range(MANY) if number % 10]


@pytest.mark.parametrize("keys", [1, MANY])
def test_keys_name_one_task_each_also_at_once(http: httpx2.Client, sql: Conn, keys: int) -> None:
    def post(number: int) -> tuple[int, str]:
        body = {"type": "code", "idempotency_key": f"k{number % keys}"}
        answer = http.post("/v1/tasks", json=body)
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(16) as threads:
        said = list(threads.map(post, range(MANY)))

    assert Counter(status for status, _ in said)[201] == keys
    assert len({task for _, task in said}) == keys


def test_many_that_end_at_once_are_judged_by_themselves(http: httpx2.Client, sql: Conn) -> None:
    http.put("/v1/agents/a", json={})
    tasks = [{"type": "code"} for _ in range(MANY)]
    assert http.post("/v1/tasks/batch", json={"tasks": tasks}).status_code == 201
    claims = http.post("/v1/claims", json={"agent": "a", "limit": MANY}).json()["claims"]
    stale = {each["id"] for each in claims[::4]}
    sql.execute(
        "update treadle.tasks set claim_token = gen_random_uuid() where id = any (%s::uuid[])",
        (list(stale),),
    )

    def complete(claim: dict[str, Any]) -> int:
        body = {"token": claim["token"], "output": {"id": claim["id"]}}
        return http.post(f"/v1/claims/{claim['id']}/complete", json=body).status_code

    with ThreadPoolExecutor(16) as threads:
        said = dict(
            zip((each["id"] for each in claims), threads.map(complete, claims), strict=True)
        )

    assert {task for task, status in said.items() if status == 409} == stale
    done = sql.execute(
        "select id::text from treadle.tasks"
        " where status = 'completed' and output ->> 'id' = id::text"
    ).fetchall()
    assert {task for (task,) in done} == said.keys() - stale


def test_claims_at_once_share_the_tasks_and_no_task_is_shared(
    http: httpx2.Client, sql: Conn
) -> None:
    for agent in "ab":
        http.put(f"/v1/agents/{agent}", json={})
    tasks = [{"type": kind} for kind in ("code", "test") for _ in range(MANY // 2)]
    assert http.post("/v1/tasks/batch", json={"tasks": tasks}).status_code == 201

    def claim(number: int) -> tuple[str, list[dict[str, Any]]]:
        agent = "ab"[number % 2]
        body = {"agent": agent, "types": ["code" if agent == "a" else "test"]}
        answer = http.post("/v1/claims", json=body)
        return agent, answer.json()["claims"] if answer.status_code == 200 else []

    with ThreadPoolExecutor(16) as threads:
        said = list(threads.map(claim, range(MANY + 10)))

    taken = [(agent, task) for agent, tasks in said for task in tasks]
    assert {len(tasks) for _, tasks in said} == {0, 1}
    assert len({task["id"] for _, task in taken}) == len(taken) == MANY
    in_hand = sql.execute("select id::text, claim_token::text, agent_id, type from treadle.tasks")
    kinds = {"a": "code", "b": "test"}
    assert {(task["id"], task["token"], agent, kinds[agent]) for agent, task in taken} == set(
        in_hand.fetchall()
    )
