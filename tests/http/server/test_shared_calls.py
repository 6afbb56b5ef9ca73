"""Concurrent HTTP requests share a database call, and each gets its own response."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import Conn, Served, until, waits_for_lock

MANY = 40


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


def test_a_completion_that_waits_for_a_lock_holds_up_no_other(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    http.put("/v1/agents/a", json={})
    for task in ({"type": "code"}, {"type": "test"}):
        assert http.post("/v1/tasks", json=task).status_code == 201
    taken = http.post("/v1/claims", json={"agent": "a", "limit": 2}).json()["claims"]

    def complete(task: dict[str, Any]) -> int:
        url = f"/v1/claims/{task['id']}/complete"
        return http.post(url, json={"token": task["token"]}).status_code

    with ThreadPoolExecutor(2) as threads:
        with psycopg.connect(server.database_url) as other:
            other.execute("select from treadle.tasks where id = %s for update", (taken[0]["id"],))
            held = threads.submit(complete, taken[0])
            until(lambda: waits_for_lock(sql))
            assert threads.submit(complete, taken[1]).result(5) == 200
            assert not held.done()
        assert held.result(5) == 200


def test_concurrent_claims_share_a_call_and_each_agent_gets_its_own_answer(
    http: httpx2.Client, sql: Conn
) -> None:
    fleet = [f"agent-{number}" for number in range(8)]
    for agent in fleet:
        http.put(f"/v1/agents/{agent}", json={})
    # With a budget each is asked alone.
    for usd in (None, 100):
        if usd is not None:
            sql.execute("select treadle.set_budget('all', null, %s)", (usd,))
        tasks = [{"type": "code"} for _ in range(4 * len(fleet))]
        assert http.post("/v1/tasks/batch", json={"tasks": tasks}).status_code == 201

        def claim(number: int) -> tuple[str, int, list[dict[str, Any]]]:
            agent = [*fleet, "nobody"][number % (len(fleet) + 1)]
            answer = http.post("/v1/claims", json={"agent": agent})
            return agent, answer.status_code, answer.json().get("claims", [])

        with ThreadPoolExecutor(16) as threads:
            said = list(threads.map(claim, range(4 * (len(fleet) + 1))))

        assert {status for agent, status, _ in said if agent == "nobody"} == {404}
        assert {status for agent, status, _ in said if agent != "nobody"} == {200}
        taken = {(task["id"], task["token"], agent) for agent, _, got in said for task in got}
        assert len(taken) == 4 * len(fleet)
        held = "select id::text, claim_token::text, agent_id from treadle.tasks where status = %s"
        assert taken == set(sql.execute(held, ("running",)).fetchall())
        sql.execute("truncate treadle.tasks cascade")


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
