"""The client of agents against a real server, over a connection that loses messages."""

import pickle
from collections.abc import Iterator

import pytest

from tests.drivers.http.harness import ME, expire, fetched, put, rows
from tests.drivers.http.lossy_proxy import Flaky
from tests.drivers.http.servers import Conn
from treadle.client import (
    AsyncHarnessClient,
    ClaimLost,
    DecisionMessage,
    HarnessClient,
    InvalidRequest,
    TaskMessage,
    Unreachable,
)


@pytest.fixture
def client(way: Flaky) -> Iterator[HarnessClient]:
    with HarnessClient(way.url, ME, patience_s=20) as made:
        yield made


@pytest.mark.requirement("H2")
def test_the_three_methods(client: HarnessClient, way: Flaky, sql: Conn) -> None:
    assert client.next_task() is None
    task_id = put(sql, '{"issue": 7}')

    task = client.next_task()
    assert isinstance(task, TaskMessage)
    assert (task.task_id, task.payload, task.retry_count) == (task_id, {"issue": 7}, 0)
    client.heartbeat(task.task_id)
    client.complete_task(task.task_id, DecisionMessage([{"do": "label"}], summary="a bug"))

    stored = "select status, result from treadle.harness_tasks"
    expected = {"actions": [{"do": "label"}], "summary": "a bug"}
    assert rows(sql, stored) == [("completed", expected)]
    assert way.seen["/harness/result"] == 1


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("when", ["before", "after", 503, 429])
def test_a_request_with_a_lost_response_is_repeated_and_has_one_effect(
    client: HarnessClient, way: Flaky, sql: Conn, when: object
) -> None:
    first, second = put(sql), put(sql)
    for path in ("/next", "/heartbeat", "/complete"):
        way.lose(path, when, times=2)  # type: ignore[arg-type]

    task = fetched(client)
    client.heartbeat(task.task_id)
    client.complete_task(task.task_id, {"n": 1})

    assert task.task_id == first
    assert way.lost == 6
    found = rows(sql, "select task_id::text, status, retry_count from treadle.harness_tasks")
    assert sorted(found) == sorted([(first, "completed", 0), (second, "pending", 0)])


@pytest.mark.requirement("H5")
def test_a_nudge_that_is_lost_is_not_repeated_and_no_error(
    client: HarnessClient, way: Flaky, sql: Conn
) -> None:
    put(sql)
    way.lose("/result", "before")

    client.complete_task(fetched(client).task_id, {"n": 1})

    assert way.seen["/harness/result"] == 1
    assert rows(sql, "select status from treadle.harness_tasks") == [("completed",)]


def test_a_claim_without_an_answer_is_found_again_by_the_next_call(way: Flaky, sql: Conn) -> None:
    task_id = put(sql)
    way.lose("/next", "after", times=100)
    with HarnessClient(way.url, ME, patience_s=0.3) as client:
        with pytest.raises(Unreachable):
            client.next_task()
        assert rows(sql, "select status from treadle.harness_tasks") == [("claimed",)]
        way.__dict__["_plans"].clear()

        assert fetched(client).task_id == task_id


def test_a_claim_with_a_lost_response_that_expired_is_made_again(way: Flaky, sql: Conn) -> None:
    task_id, other = put(sql), put(sql)
    way.lose("/next", "after", times=100)
    with HarnessClient(way.url, ME, patience_s=0.3) as client:
        with pytest.raises(Unreachable):
            client.next_task()
        way.__dict__["_plans"].clear()
        expire(sql, task_id)

        task = fetched(client)

        assert (task.task_id, task.retry_count) == (task_id, 1)
        client.complete_task(task_id, {"n": 1})
        assert fetched(client).task_id == other


def test_a_lost_claim_raises_and_the_other_decision_stays(
    client: HarnessClient, way: Flaky, sql: Conn
) -> None:
    task_id = put(sql)
    fetched(client)
    expire(sql, task_id)
    with HarnessClient(way.url, ME) as other:
        assert fetched(other).retry_count == 1
        with pytest.raises(ClaimLost):
            client.heartbeat(task_id)
        with pytest.raises(ClaimLost):
            client.complete_task(task_id, {"by": "first"})
        other.complete_task(task_id, {"by": "second"})

    assert rows(sql, "select result from treadle.harness_tasks") == [({"by": "second"},)]


def test_a_client_rejects_calls_for_a_task_that_it_did_not_claim(
    client: HarnessClient, sql: Conn
) -> None:
    task_id = put(sql)
    for act in (client.heartbeat, lambda each: client.complete_task(each, {})):
        with pytest.raises(ClaimLost, match=f"did not claim task {task_id}: .* adopt"):
            act(task_id)


@pytest.mark.requirement("H2")
def test_a_task_that_one_client_claimed_another_one_ends(
    client: HarnessClient, way: Flaky, sql: Conn
) -> None:
    put(sql)
    task = fetched(client)
    assert task.claim_token not in repr(task)
    # As it goes to another process.
    sent = pickle.loads(pickle.dumps(task))

    with HarnessClient(way.url, ME) as other:
        other.adopt(sent)
        other.heartbeat(sent.task_id)
        other.complete_task(sent.task_id, {"by": "other"})

    assert rows(sql, "select result from treadle.harness_tasks") == [({"by": "other"},)]


async def test_a_task_is_adopted_by_a_program_with_an_event_loop(
    client: HarnessClient, way: Flaky, sql: Conn
) -> None:
    put(sql)
    task = fetched(client)

    async with AsyncHarnessClient(way.url, ME) as other:
        other.adopt(task)
        await other.fail_task(task.task_id, "no model", retry=False)

    assert rows(sql, "select status from treadle.harness_tasks") == [("failed",)]


def test_a_failed_task_is_pending_again(client: HarnessClient, sql: Conn) -> None:
    task_id = put(sql)
    client.fail_task(fetched(client).task_id, "no model")
    assert fetched(client).retry_count == 1
    client.fail_task(task_id, "never", retry=False)
    assert rows(sql, "select status from treadle.harness_tasks") == [("failed",)]


@pytest.mark.requirement("H10")
def test_a_credential_in_a_decision_is_rejected_and_the_claim_stays(
    client: HarnessClient, sql: Conn
) -> None:
    put(sql)
    task = fetched(client)
    with pytest.raises(InvalidRequest) as raised:
        client.complete_task(task.task_id, {"password": "abc"})
    assert (raised.value.code, raised.value.status) == ("secret-refused", 422)
    assert "Remove it" in (raised.value.hint or "")

    client.complete_task(task.task_id, {"password": "${DB_PASSWORD}"})


def test_a_decision_that_is_too_large_is_rejected_and_the_claim_stays(
    client: HarnessClient, sql: Conn
) -> None:
    put(sql)
    task = fetched(client)
    with pytest.raises(InvalidRequest) as raised:
        client.complete_task(task.task_id, {"text": "a" * 3_000_000})
    assert raised.value.status == 413

    client.fail_task(task.task_id, "too large", retry=False)

    assert rows(sql, "select status from treadle.harness_tasks") == [("failed",)]


@pytest.mark.parametrize("url", ["localhost:8420", "ftp://x", "http://", "http://a:b@host"])
def test_a_wrong_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match=r"http|token"):
        HarnessClient(url, ME)
    with pytest.raises(ValueError, match=r"http|token"):
        HarnessClient("http://localhost", url)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ünïcode"])
def test_a_wrong_token_is_refused_at_once(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        HarnessClient("http://localhost", ME, token)


@pytest.mark.parametrize("decision", [None, "text", 7, ["list"]])
def test_a_decision_is_an_object(client: HarnessClient, sql: Conn, decision: object) -> None:
    put(sql)
    task = fetched(client)
    with pytest.raises(TypeError, match="decision"):
        client.complete_task(task.task_id, decision)


def test_a_server_that_is_away_is_unreachable_when_patience_is_over() -> None:
    with (
        HarnessClient("http://127.0.0.1:9", ME, patience_s=0.3) as client,
        pytest.raises(Unreachable, match="no response from"),
    ):
        client.next_task()
