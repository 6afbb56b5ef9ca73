"""Pages of task lists are stable while tasks are added."""

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.v1 import act, enqueue, register, take_one


def ids(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def test_pages_are_stable_while_tasks_come(http: httpx2.Client) -> None:
    tasks = [enqueue(http) for _ in range(5)]
    newest_first = tasks[::-1]

    first = http.get("/v1/tasks", params={"limit": 2})
    enqueue(http)
    second = http.get(first.links["next"]["url"])
    enqueue(http)
    cursor = second.json()["next_cursor"]
    third = http.get("/v1/tasks", params={"limit": 2, "cursor": cursor})

    assert ids(first) + ids(second) + ids(third) == newest_first
    assert third.json()["next_cursor"] is None
    assert "next" not in third.links


def test_a_page_that_ends_exactly_has_no_next_one(http: httpx2.Client) -> None:
    tasks = [enqueue(http) for _ in range(2)]
    answer = http.get("/v1/tasks", params={"limit": 2})
    assert ids(answer) == tasks[::-1]
    assert answer.json()["next_cursor"] is None


def test_the_next_page_has_the_same_filter(http: httpx2.Client) -> None:
    tagged = [enqueue(http, tags=["a b&c"]) for _ in range(2)]
    enqueue(http)

    first = http.get("/v1/tasks", params={"limit": 1, "tag": "a b&c"})
    second = http.get(first.links["next"]["url"])

    assert ids(first) + ids(second) == tagged[::-1]
    assert second.json()["next_cursor"] is None


def test_tasks_are_found_by_what_they_are(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("select treadle.define_queue('mail'), treadle.define_type('other')")
    register(http)
    project = sql.execute("select id from treadle.define_project('p')").fetchone()
    assert project is not None
    plain = enqueue(http)
    mailed = enqueue(http, queue="mail")
    other = enqueue(http, type="other")
    owned = enqueue(http, project="p")
    child = enqueue(http, parent_id=plain)
    assert take_one(http)["id"] == plain

    def found(**said: object) -> list[str]:
        return ids(http.get("/v1/tasks", params={k: str(v) for k, v in said.items()}))

    assert found(queue="mail") == [mailed]
    assert found(type="other") == [other]
    assert found(status="running") == [plain]
    assert found(agent="a") == [plain]
    assert found(project_id=project[0]) == [owned]
    assert found(parent_id=plain) == [child]
    assert found(queue="mail", type="other") == []
    assert found(tag="nothing") == []


@pytest.mark.parametrize(
    "said",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=99999999999999999999",
        "cursor=x",
        "cursor=WzFd",
        "cursor=WyJcdTAwMDAiXQ",
        "cursor=" + "a" * 3000,
        "status=lost",
        "dag_id=x",
        "queue=%00",
        "tag=%00",
        "queue=",
    ],
)
def test_a_list_that_cannot_be_is_refused(http: httpx2.Client, said: str) -> None:
    answer = http.get(f"/v1/tasks?{said}")
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_events_of_a_task_come_in_pages(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    claim = take_one(http)
    for number in range(3):
        act(http, claim, "ask", name=f"q{number}", question="?")

    first = http.get(f"/v1/tasks/{task_id}/events", params={"limit": 2})
    second = http.get(first.links["next"]["url"])

    numbers = [each["id"] for page in (first, second) for each in page.json()["items"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 3
