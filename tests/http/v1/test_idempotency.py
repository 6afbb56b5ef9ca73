"""A POST with an Idempotency-Key takes effect once, however often it is sent."""

import ast
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import Conn, Served
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, status_of, take_one
from treadle import api

TASK = {"type": "code", "spec": {"n": 1}}
# The first two DAGs meet a deadlock.
DEADLOCKS = """
    create sequence public.meetings;
    create function public.meet() returns trigger language plpgsql security definer as $$
    begin
      if nextval('public.meetings') < 3 then
        raise sqlstate '40P01';
      end if;
      return new;
    end $$;
    create trigger dags_000_meet before insert on treadle.dags
    for each row execute function public.meet();
"""
NO_DEADLOCKS = "drop function public.meet() cascade; drop sequence public.meetings"


def post(
    http: httpx2.Client, key: str, body: object = TASK, path: str = "/v1/tasks"
) -> httpx2.Response:
    return http.post(path, json=body, headers={"Idempotency-Key": key})


def count(sql: Conn) -> int:
    found = sql.execute("select count(*) from treadle.tasks").fetchone()
    assert found is not None
    return int(found[0])


def test_a_repeat_gets_the_first_answer(http: httpx2.Client, sql: Conn) -> None:
    first, again = post(http, "k"), post(http, "k")

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.headers["location"] == again.headers["location"]
    assert again.headers["content-type"] == "application/json"
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert count(sql) == 1


def test_another_request_cannot_have_the_key(http: httpx2.Client, sql: Conn) -> None:
    post(http, "k")
    other = post(http, "k", {"type": "code"})
    elsewhere = post(http, "k", TASK, "/v1/tasks/batch")

    assert code_of(other) == (422, "key-reused")
    assert other.json()["route"] == "POST /v1/tasks"
    assert elsewhere.status_code == 422
    assert count(sql) == 1


def test_the_same_body_for_another_task_is_another_request(http: httpx2.Client) -> None:
    first, second = enqueue(http), enqueue(http)
    post(http, "k", {}, f"/v1/tasks/{first}/cancel")
    assert code_of(post(http, "k", {}, f"/v1/tasks/{second}/cancel")) == (422, "key-reused")
    assert status_of(http, second) == "ready"


def test_an_error_leaves_the_key_free(http: httpx2.Client, sql: Conn) -> None:
    assert code_of(post(http, "k", {"type": "later"})) == (404, "unknown-type")
    sql.execute("select treadle.define_type('later')")
    assert post(http, "k", {"type": "later"}).status_code == 201


def test_a_request_under_way_is_in_flight(http: httpx2.Client, server: Served) -> None:
    with psycopg.connect(server.database_url) as other:
        # As the server holds it.
        other.execute("select treadle.begin_reply('k', 'local', 'POST /v1/tasks', 'x')")
        answer = post(http, "k")
        assert code_of(answer) == (409, "request-in-flight")
        assert answer.headers["retry-after"] == "1"
        assert post(http, "l").status_code == 201
    assert post(http, "k").status_code == 201


def test_sixteen_at_once_make_one_task(http: httpx2.Client, sql: Conn, server: Served) -> None:
    def send(_: int) -> httpx2.Response:
        with httpx2.Client(base_url=server.url, timeout=30) as client:
            return post(client, "k")

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(send, range(16)))

    assert count(sql) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    assert len(made) == 1
    fresh = [each for each in answers if each.status_code == 201
             and "idempotent-replayed" not in each.headers]  # fmt: skip
    assert len(fresh) == 1
    assert post(http, "k").json()["id"] in made


def test_sixteen_with_keys_of_their_own_make_sixteen_tasks(
    sql: Conn, server: Served, http: httpx2.Client
) -> None:
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: post(http, str(uuid4())), range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert count(sql) == 16


def test_decisions_and_answers_are_made_once_too(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    claim = take_one(http)
    wait = act(http, claim, "ask", name="q", question="?").json()["wait_id"]
    requests = [
        (f"/v1/waits/{wait}/answer", {"value": 1}),
        ("/v1/events", {"event": "paid"}),
        (f"/v1/tasks/{task_id}/cancel", {"reason": "no"}),
        (f"/v1/tasks/{task_id}/retry", {"note": "yes"}),
        ("/v1/tasks/bulk", {"action": "cancel", "filter": {"queue": "default"}}),
        ("/v1/tasks/batch", {"tasks": [TASK]}),
    ]
    for number, (path, body) in enumerate(requests):
        first, again = (post(http, f"k{number}", body, path) for _ in range(2))
        assert first.is_success, first.text
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["idempotent-replayed"] == "true"


def test_an_answer_is_stored_with_what_it_did(http: httpx2.Client, sql: Conn) -> None:
    made = post(http, "k").json()
    row = sql.execute("select principal, route, status, body from treadle.replies").fetchone()
    assert row is not None
    assert row[:3] == ("local", "POST /v1/tasks", 201)
    assert json.loads(row[3]) == made


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_that_is_none_is_refused(http: httpx2.Client, sql: Conn, key: str) -> None:
    assert code_of(post(http, key))[0] == 422
    assert count(sql) == 0


def test_a_key_does_not_hide_that_an_object_is_missing(http: httpx2.Client) -> None:
    for _ in range(2):
        answer = post(http, "k", {}, f"/v1/tasks/{UNKNOWN_ID}/cancel")
        assert code_of(answer) == (404, "task-not-found")


def test_a_dag_that_meets_a_deadlock_is_made_in_a_new_transaction(
    http: httpx2.Client, sql: Conn
) -> None:
    plan = {"name": "d", "tasks": [{"type": "code"}]}
    sql.execute(DEADLOCKS.encode())
    try:
        first, again = (post(http, "k", plan, "/v1/dags") for _ in range(2))
    finally:
        sql.execute(NO_DEADLOCKS.encode())

    assert (first.status_code, again.content) == (201, first.content)
    assert count(sql) == 1


def test_an_effect_reads_through_its_own_connection_only() -> None:
    """A request that holds a pooled connection and needs another may wait for itself."""
    effects = [
        (path.name, node)
        for path in Path(api.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "effect"
    ]
    assert len(effects) > 20
    for name, effect in effects:
        # Its own hides the one of the route.
        assert [each.arg for each in effect.args.args] == ["db"], f"{name}: effect(db: Database)"
        used = {each.id for each in ast.walk(effect) if isinstance(each, ast.Name)}
        assert "app" not in used, f"{name}: say db"
