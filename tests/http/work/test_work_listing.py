"""Lists of work items: filters, order, pages, and the queries of a dispatcher's heartbeat."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.servers import Conn, Served
from tests.drivers.http.work import add, brought, change, listed, refused
from treadle.client import WorkQueue


@pytest.mark.requirement("W3")
def test_items_come_by_priority_then_age_and_with_since_by_age(http: httpx2.Client) -> None:
    start = datetime.now(UTC) - timedelta(seconds=1)
    for number, priority in enumerate((3, 1, 5, 3, 1, 2)):
        add(http, description=f"{number}", priority=priority)

    assert listed(http) == ["1", "4", "5", "0", "3", "2"]
    assert listed(http, since=start.isoformat()) == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.requirement("W3")
def test_filters_narrow_the_list_and_may_be_combined(http: httpx2.Client) -> None:
    project = http.post("/projects", json={"name": "P"}).json()["id"]
    add(http, description="a", assigned_agent="steve-w")
    add(http, description="b", assigned_agent="maria-k", project_id=project)
    c = add(http, description="c", assigned_agent="steve-w", project_id=project)
    change(http, c, status="dispatched")

    assert listed(http, status="queued") == ["a", "b"]
    assert listed(http, agent="steve-w") == ["a", "c"]
    assert listed(http, agent="steve-w", status="queued") == ["a"]
    assert listed(http, agent="steve-w", status="dispatched") == ["c"]
    assert listed(http, project_id=project) == ["b", "c"]
    assert listed(http, project_id=project, agent="maria-k") == ["b"]
    assert listed(http, agent="nobody") == []
    assert listed(http, project_id=str(uuid4())) == []


@pytest.mark.requirement("W3")
def test_since_is_after_a_moment_and_not_at_it(http: httpx2.Client) -> None:
    first = add(http, description="first")
    add(http, description="second")

    assert listed(http, since=first["created_at"]) == ["second"]
    # As people write it into an address, with a plus sign that stands for a space there.
    plain = first["created_at"].replace("Z", "+00:00")
    assert [each["description"] for each in http.get(f"/work?since={plain}").json()] == ["second"]
    assert listed(http, since="2020-01-01") == ["first", "second"]
    assert listed(http, since="2999-01-01T00:00:00") == []


@pytest.mark.requirement("W10")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [("completed", "success"), ("failed", "failed"), ("cancelled", None)],
)
def test_for_ends_since_is_about_the_end(
    http: httpx2.Client, status: str, outcome: str | None
) -> None:
    before = brought(http, status, description="ended before")
    late = brought(http, "queued" if status == "cancelled" else "in_progress", description="late")
    new = add(http, description="not ended")
    check = new["created_at"]
    change(http, late, status=status, **({"outcome": outcome} if outcome else {}))

    assert listed(http, status=status) == ["ended before", "late"]
    assert listed(http, status=status, since=check) == ["late"]
    assert listed(http, since=check) == []
    assert listed(http, status=status, since=before["completed_at"]) == ["late"]


@pytest.mark.requirement("W10")
def test_the_queries_of_a_dispatcher_heartbeat_are_answered(http: httpx2.Client) -> None:
    for status in ("in_progress", "blocked", "failed", "completed"):
        brought_by = brought(http, status, description=status)
        if status == "in_progress":
            change(http, brought_by, status="blocked", notes="makes room")
            change(http, brought_by, status="in_progress", assigned_agent="other")

    for status in ("in_progress", "blocked", "failed", "completed"):
        assert listed(http, status=status) == [status]


@pytest.mark.requirement("W3")
def test_a_long_list_has_pages_connected_by_link_headers(http: httpx2.Client, sql: Conn) -> None:
    sql.execute(
        "select treadle.create_work_item('x', n::text, p_priority => 1 + n % 3)"
        " from generate_series(0, 1049) as n"
    )
    whole = [str(n) for rest in range(3) for n in range(rest, 1050, 3)]

    first = http.get("/work")
    assert [each["description"] for each in first.json()] == whole[:1000]
    rest = http.get(first.links["next"]["url"])
    assert [each["description"] for each in rest.json()] == whole[1000:]
    assert "next" not in rest.links

    asked: list[dict[str, str | int]] = [{"limit": 400}, {"limit": 400, "since": "2020-01-01"}]
    for params in asked:
        found, answer = [], http.get("/work", params=params)
        found += answer.json()
        while "next" in answer.links:
            # What comes meanwhile moves nothing that was not seen yet.
            add(http, type="y", description="later", priority=1)
            answer = http.get(answer.links["next"]["url"])
            found += answer.json()
        seen = [each["description"] for each in found if each["type"] == "x"]
        assert seen == (whole if "since" not in params else [str(n) for n in range(1050)])


@pytest.mark.requirement("W10")
def test_what_was_completed_since_the_last_check_comes_in_pages_too(http: httpx2.Client) -> None:
    before = brought(http, "completed", description="before")
    # The order is that of their making, whatever their priority and whenever they ended.
    made = [add(http, description=f"{n}", priority=5 - n % 5) for n in range(7)]
    for item in reversed(made):
        change(http, item, status="dispatched", assigned_agent="steve-w")
        change(http, item, status="in_progress")
        change(http, item, status="completed", outcome="success")
    params = {"status": "completed", "since": before["completed_at"], "limit": "3"}

    answer = http.get("/work", params=params)
    pages = [[each["description"] for each in answer.json()]]
    while "next" in answer.links:
        answer = http.get(answer.links["next"]["url"])
        pages.append([each["description"] for each in answer.json()])

    assert pages == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


@pytest.mark.requirement("W3")
def test_a_page_of_large_payloads_ends_early_and_links_to_the_next(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    sql.execute(
        """
        select treadle.create_work_item('x', n::text, jsonb_build_object('a', repeat('x', 1000000)))
        from generate_series(1, 70) as n
        """
    )

    first = http.get("/work")
    rest = http.get(first.links["next"]["url"])

    assert (len(first.json()), len(rest.json())) == (67, 3)
    assert "next" not in rest.links
    with WorkQueue(server.url) as queue:
        assert len(queue.work_list()) == 70


@pytest.mark.requirement("W3")
def test_a_filter_that_is_empty_is_the_same_as_not_given(http: httpx2.Client) -> None:
    brought(http, "dispatched", description="a")
    add(http, description="b", assigned_agent="maria-k")

    assert listed(http, status="", agent="", project_id="", since="") == ["a", "b"]
    assert listed(http, status="queued", agent="") == ["b"]
    assert listed(http, status="", agent="steve-w", since="") == ["a"]


NONSENSE = [
    "status=ready",
    "since=yesterday",
    "since=12",
    "since=-1700000000",
    "since=2026-13-01T00:00:00Z",
    "since=20261117T000000Z",
    "since=0001-01-01T00:00:00%2B14:00",
    "project_id=p",
    "limit=0",
    "limit=1001",
    "limit=ten",
    "cursor=abc",
    "agent=%00",
    "agent=" + "a" * 201,
]


@pytest.mark.requirement("W3")
def test_a_filter_that_makes_no_sense_is_refused(http: httpx2.Client) -> None:
    for query in NONSENSE:
        problem = refused(http.get(f"/work?{query}"), 422, "invalid-argument")
        assert problem["errors"][0]["pointer"] == f"query/{query.partition('=')[0]}"


def test_a_page_after_a_missing_item_is_not_found(http: httpx2.Client) -> None:
    refused(http.get(f"/work?cursor={uuid4()}"), 404, "work-item-not-found")


@pytest.mark.requirement("W1")
def test_projects_come_in_pages_too(http: httpx2.Client) -> None:
    names = [f"p{n}" for n in range(5)]
    for name in names:
        assert http.post("/projects", json={"name": name}).status_code == 201

    first = http.get("/projects", params={"limit": 3})
    assert [each["name"] for each in first.json()] == names[:3]
    rest = http.get(first.links["next"]["url"])
    assert [each["name"] for each in rest.json()] == names[3:]
    assert "next" not in rest.links
