"""The harness for operators over HTTP: actions, and agents that are nudged."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.bound_tokens import FORBIDDEN
from tests.drivers.http.harness import ME, decided, interrupted, put, rows
from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.tokens import Closed, closed, create
from tests.drivers.http.v1 import code_of
from tests.drivers.processes.harness import free_port
from treadle.api.v1 import harness as models

UNKNOWN_ID = "01890000-0000-7000-8000-00000000dead"
ACTIONS, NUDGING = "/v1/harness/actions", "/v1/harness/nudging"


@pytest.mark.requirement("H6")
def test_actions_are_listed_by_how_they_stand(http: httpx2.Client, sql: Conn) -> None:
    cut, alive = interrupted(sql), decided(sql)
    put(sql)

    found = listed(models.Action, http.get(ACTIONS))

    assert [(row["task_id"], row["action"]) for row in found] == [
        (alive, "executing"),
        (cut, "interrupted"),
    ]
    assert [row["task_id"] for row in walked(http, ACTIONS)] == [alive, cut]
    only = http.get(ACTIONS, params={"status": "interrupted"}).json()["items"]
    assert [row["task_id"] for row in only] == [cut]


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(("verb", "becomes"), [("again", "waiting"), ("skip", "skipped")])
def test_an_interrupted_action_is_decided_about(
    http: httpx2.Client, sql: Conn, verb: str, becomes: str
) -> None:
    task_id = interrupted(sql)

    answer = http.post(f"{ACTIONS}/{task_id}/{verb}", json={"note": "looked"})

    shown = shaped(models.Decided, answer)
    assert shown == {"task_id": task_id, "action": becomes}
    [row] = http.get(ACTIONS).json()["items"]
    assert row["action"] == becomes
    kind = "harness.rerun_requested" if verb == "again" else "harness.skipped"
    told = rows(sql, "select actor, data ->> 'note' from treadle.events where kind = %s", kind)
    assert told == [("local", "looked")]


@pytest.mark.parametrize("verb", ["again", "skip"])
def test_an_action_under_way_is_left_alone_and_none_is_not_found(
    http: httpx2.Client, sql: Conn, verb: str
) -> None:
    task_id = decided(sql)

    assert code_of(http.post(f"{ACTIONS}/{task_id}/{verb}")) == (409, "illegal-transition")
    assert code_of(http.post(f"{ACTIONS}/{UNKNOWN_ID}/{verb}")) == (404, "task-not-found")

    [row] = http.get(ACTIONS).json()["items"]
    assert row["action"] == "executing"


def test_an_operator_allows_agents_to_be_nudged(http: httpx2.Client, sql: Conn) -> None:
    allowed = http.put(NUDGING, json={"agent_url": f"{ME}/", "allow_private": True})
    shown = shaped(models.NudgedAgent, allowed)
    assert (shown["agent_url"], shown["allow_private"], shown["created_by"]) == (ME, True, "local")
    assert listed(models.NudgedAgent, http.get(NUDGING)) == [shown]

    gone = http.delete(NUDGING, params={"agent_url": ME})

    assert gone.status_code == 204
    assert http.get(NUDGING).json()["items"] == []
    query = "select kind, actor from treadle.events where kind like 'harness.nudges%%' order by id"
    assert rows(sql, query) == [
        ("harness.nudges_allowed", "local"),
        ("harness.nudges_forbidden", "local"),
    ]


def store(http: httpx2.Client, url: str) -> None:
    answer = http.post("/harness/tasks", json={"agent_url": url, "payload": {}})
    assert answer.status_code == 201, answer.text


@pytest.mark.requirement("H1")
def test_an_agent_on_the_host_of_a_loopback_server_needs_no_permission(
    http: httpx2.Client,
) -> None:
    # New ports: tests share the server, which asks once for each URL.
    own = [f"http://{host}:{free_port()}" for host in ("localhost", "127.0.0.1", "[::1]")]
    others = [ME, "http://10.0.0.1:9000", "http://localhost.example.org", "https://example.org"]

    for url in [*own, *others]:
        store(http, url)

    shown = http.get(NUDGING).json()["items"]
    assert sorted(each["agent_url"] for each in shown) == sorted(own)
    assert all(each["allow_private"] for each in shown)


@pytest.mark.requirement("H1")
def test_an_agent_on_the_host_that_an_operator_forbids_is_not_nudged(
    http: httpx2.Client,
) -> None:
    url = f"http://localhost:{free_port()}"
    assert http.delete(NUDGING, params={"agent_url": url}).status_code == 204

    store(http, url)

    assert http.get(NUDGING).json()["items"] == []
    assert http.put(NUDGING, json={"agent_url": url, "allow_private": True}).status_code == 200
    assert [each["agent_url"] for each in http.get(NUDGING).json()["items"]] == [url]


@pytest.mark.requirement("H1")
def test_only_an_admin_has_agents_on_the_host_nudged(guarded: Closed) -> None:
    for scope, count in (("enqueue", 0), ("admin", 1)):
        with guarded.client(guarded.tokens[scope]) as http:
            store(http, f"http://localhost:{free_port()}")
        gone = "with gone as (delete from treadle.harness_agents returning 1) table gone"
        assert len(rows(guarded.sql, gone)) == count, scope


def test_concurrent_changes_of_a_nudged_agent_are_safe(http: httpx2.Client) -> None:
    def ask(number: int) -> int:
        if number % 2:
            return http.delete(NUDGING, params={"agent_url": ME}).status_code
        return http.put(NUDGING, json={"agent_url": ME, "allow_private": True}).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(400)))

    assert set(answers[0::2]) <= {200, 404}
    assert set(answers[1::2]) == {204}


@pytest.mark.parametrize("url", ["", "ftp://agent", "http://user@agent", "http://a b"])
def test_an_invalid_address_is_not_nudged(http: httpx2.Client, url: str) -> None:
    put_so = http.put(NUDGING, json={"agent_url": url})
    assert code_of(put_so) == (422, "invalid-argument")
    taken = http.delete(NUDGING, params={"agent_url": url})
    assert code_of(taken) == (422, "invalid-argument")
    assert http.get(NUDGING).json()["items"] == []


def test_a_private_address_is_refused_at_once_unless_it_is_allowed(http: httpx2.Client) -> None:
    for url in ("http://127.0.0.1:19100", "http://localhost:19100", "http://10.1.2.3"):
        refused = http.put(NUDGING, json={"agent_url": url})
        assert code_of(refused) == (422, "invalid-argument")
        assert "allow_private" in refused.json()["hint"]
    assert http.get(NUDGING).json()["items"] == []


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("closed")) as found:
        found.sql.execute("select treadle.define_queue('mail'), treadle.define_project('p')")
        yield found


def caller(guarded: Closed, **bounds: object) -> httpx2.Client:
    """A client with all scopes and these restrictions."""
    return guarded.client(create(guarded.sql, str(uuid4()), "admin", **bounds))


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("bounds", [{"queues": ["mail"]}, {"project": "p"}, {"agent": "a"}])
def test_a_bound_token_does_not_reach_the_actions_of_others(
    guarded: Closed, bounds: dict[str, Any]
) -> None:
    task_id = interrupted(guarded.sql)
    other = caller(guarded, **bounds)

    assert code_of(other.get(ACTIONS)) == FORBIDDEN
    for verb in ("again", "skip"):
        assert code_of(other.post(f"{ACTIONS}/{task_id}/{verb}")) == FORBIDDEN

    assert caller(guarded).get(ACTIONS).json()["items"][0]["action"] == "interrupted"


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("bounds", [{"queues": ["harness"]}, {"project": "p"}])
def test_a_token_for_a_part_does_not_reach_nudging(guarded: Closed, bounds: dict[str, Any]) -> None:
    partial = caller(guarded, **bounds)

    assert code_of(partial.get(NUDGING)) == FORBIDDEN
    assert code_of(partial.put(NUDGING, json={"agent_url": ME})) == FORBIDDEN
    assert code_of(partial.delete(NUDGING, params={"agent_url": ME})) == FORBIDDEN


@pytest.mark.requirement("B10")
def test_where_the_harness_connects_to_is_said_by_administrators(guarded: Closed) -> None:
    operator = guarded.client(guarded.tokens["operate"])

    assert code_of(operator.put(NUDGING, json={"agent_url": ME})) == FORBIDDEN
    assert code_of(operator.delete(NUDGING, params={"agent_url": ME})) == FORBIDDEN

    assert operator.get(NUDGING).json()["items"] == []
