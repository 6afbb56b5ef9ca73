"""Servers of a queue: another maximum size, a killed server, a server with tokens."""

from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.queue import dispatch, entry, listing, submit
from tests.drivers.http.servers import Serve
from tests.drivers.http.tokens import closed, create


@pytest.mark.requirement("Q2", "Q14", "Q15")
def test_at_capacity_the_request_gets_503_and_nothing_is_stored(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AG_QUEUE_MAX_SIZE", "2")
    monkeypatch.setenv("AG_QUEUE_MAX_ATTEMPTS", "5")
    server = serve()
    with (
        httpx2.Client(base_url=server.url, timeout=30) as http,
        psycopg.connect(server.database_url) as conn,
    ):
        for _ in range(2):
            submit(http)

        for path in ("/api/queue/task", "/api/task"):
            answer = http.post(path, json={"prompt": "3"})

            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            body = answer.json()
            assert (body["code"], body["reason"]) == ("queue-full", "queue_full")
            assert "TREADLE_QUEUE_MAX_SIZE" in body["hint"]
            assert "Queue is full. Please try again later." in body["detail"]
            assert (body["depth"], body["max_size"]) == (2, 2)
        assert listing(http)["depth"] == 2
        assert http.get("/status").json()["queue"]["max_size"] == 2
        rows = conn.execute("select distinct max_attempts from treadle.tasks").fetchall()
        assert rows == [(5,)]
        rejected = server.child.events("queue.submit_rejected", reason="queue_full")
        assert [line["depth"] for line in rejected] == [2, 2]
        assert rejected[0]["level"] == "warning"


@pytest.mark.requirement("Q2")
def test_the_queue_is_the_same_after_its_server_was_killed(serve: Serve) -> None:
    first = serve()
    with (
        httpx2.Client(base_url=first.url, timeout=30) as http,
        psycopg.connect(first.database_url, autocommit=True) as conn,
    ):
        for word in ("working", "one", "two"):
            submit(http, word, source="cli")
        gone = submit(http)["queue_id"]
        http.post(f"/api/queue/{gone}/cancel")
        dispatch(conn)
        before = listing(http)
    first.child.kill()

    second = serve(database_url=first.database_url)

    with httpx2.Client(base_url=second.url, timeout=30) as http:
        assert listing(http) == before
        assert [task["prompt"] for task in before["tasks"]] == ["working", "one", "two"]
        assert entry(http, gone)["state"] == "cancelled"
        assert submit(http, "three")["position"] == 3


@pytest.mark.requirement("B10")
def test_a_token_for_something_else_does_not_reach_the_queue(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    with closed(new_database, tmp_path) as guarded:
        with guarded.client(guarded.tokens["enqueue"]) as http:
            made = submit(http)["queue_id"]
        guarded.sql.execute("select treadle.define_project('shop')")
        others = [
            create(guarded.sql, name, "read", "enqueue", **{name: value})
            for name, value in (("queues", ["default"]), ("project", "shop"))
        ]

        for token in others:
            with guarded.client(token) as http:
                asked = [
                    http.post("/api/queue/task", json={"prompt": "x"}),
                    http.post("/api/task", json={"prompt": "x"}),
                    http.get("/api/queue"),
                    http.get(f"/api/queue/{made}"),
                    http.post(f"/api/queue/{made}/cancel"),
                ]
            assert [answer.status_code for answer in asked] == [403] * 5
        with guarded.client(guarded.tokens["read"]) as http:
            assert listing(http)["depth"] == 1
        with guarded.client() as http:
            assert http.get("/status").json()["queue"]["depth"] == 1
            assert http.get("/api/queue").status_code == 401


@pytest.mark.requirement("Q10", "Q13", "B10")
def test_the_status_lists_jobs_only_to_callers_with_the_scope_read(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    with closed(new_database, tmp_path) as guarded:
        guarded.sql.execute("select treadle.submit_push('{\"prompt\": \"x\"}', 'cli', null, 50, 3)")
        guarded.sql.execute(
            "select treadle.define_schedule('nightly', %s)",
            ('{"cron": "@daily", "task": {"queue": "push", "spec": {"prompt": "x"}}}',),
        )
        guarded.sql.execute("select treadle.define_project('shop')")
        tokens: dict[str, str | None] = {
            **{name: guarded.tokens[name] for name in ("read", "operate", "admin", "work")},
            "nobody": None,
            "wrong": "hunter2",
            "mail": create(guarded.sql, "mail", "read", queues=["mail"]),
            "shop": create(guarded.sql, "shop", "read", project="shop"),
        }
        told = {}
        for name, token in tokens.items():
            with guarded.client(token) as http:
                answer = http.get("/status")
                assert answer.status_code == 200
                told[name] = [job["name"] for job in answer.json().get("jobs", [])]

    readers = ("read", "operate", "admin")
    assert told == {name: ["nightly"] if name in readers else [] for name in tokens}
