"""Permissions of the work API: by token, and by the item."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.tokens import Closed, closed, create
from tests.drivers.http.work import Item, add, brought, change, get, listed, refused

DISPATCH = ("read", "enqueue", "work")


@dataclass(frozen=True)
class Callers:
    """Clients of a dispatcher, an agent, other queues, a project, and one with the scope read."""

    marcus: httpx2.Client
    steve: httpx2.Client
    mail: httpx2.Client
    project: httpx2.Client
    reader: httpx2.Client


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("closed")) as found:
        found.sql.execute("select treadle.create_project('p'), treadle.create_project('q')")
        yield found


@pytest.fixture(scope="module")
def callers(guarded: Closed) -> Callers:
    sql = guarded.sql
    return Callers(
        guarded.client(create(sql, "marcus-a", *DISPATCH)),
        guarded.client(create(sql, "steve", "read", "work", agent="steve-w")),
        guarded.client(create(sql, "mailer", *DISPATCH, queues=["mail"])),
        guarded.client(create(sql, "projector", *DISPATCH, project="p")),
        guarded.client(guarded.tokens["read"]),
    )


@pytest.fixture(autouse=True)
def empty(guarded: Closed) -> None:
    guarded.sql.execute("truncate treadle.tasks")


def tried(http: httpx2.Client, item: Item, **fields: str) -> int:
    return http.patch(f"/work/{item['id']}", json=fields).status_code


@pytest.mark.requirement("B10")
def test_an_agent_does_its_own_items_and_dispatches_none(callers: Callers) -> None:
    mine = add(callers.marcus, assigned_agent="steve-w")
    assert mine["created_by"] == "marcus-a"
    assert tried(callers.steve, mine, status="dispatched") == 403
    assert tried(callers.steve, mine, status="cancelled") == 403
    refused(callers.steve.delete(f"/work/{mine['id']}"), 403, "forbidden")
    refused(callers.steve.post("/work", json={}), 403, "forbidden")
    refused(callers.steve.post("/projects", json={"name": "x"}), 403, "forbidden")
    change(callers.marcus, mine, status="dispatched")
    assert tried(callers.steve, mine, assigned_agent="maria-k") == 403
    change(callers.steve, mine, status="in_progress", assigned_agent="steve-w")
    done = change(callers.steve, mine, status="completed", outcome="success")
    assert done["status"] == "completed"
    assert [each["actor"] for each in get(callers.reader, mine)["changes"]] == [
        *("marcus-a", "marcus-a", "steve", "steve"),
    ]

    other = brought(callers.marcus, "dispatched")
    change(callers.marcus, other, assigned_agent="maria-k")
    for fields in ({"status": "in_progress"}, {"notes": "mine now"}, {"assigned_agent": "steve-w"}):
        assert tried(callers.steve, other, **fields) == 403
    assert get(callers.marcus, other)["assigned_agent"] == "maria-k"


@pytest.mark.requirement("B10")
def test_a_token_for_other_queues_reaches_no_work_item(callers: Callers) -> None:
    item = brought(callers.marcus, "dispatched")
    for answer in (
        callers.mail.get("/work"),
        callers.mail.get(f"/work/{item['id']}"),
        callers.mail.post("/work", json={"type": "x", "description": "y"}),
        callers.mail.patch(f"/work/{item['id']}", json={"notes": "x"}),
        callers.mail.delete(f"/work/{item['id']}"),
        callers.mail.post("/projects", json={"name": "x"}),
    ):
        refused(answer, 403, "forbidden")


@pytest.mark.requirement("B10")
def test_a_token_for_a_project_reaches_the_items_of_that(callers: Callers) -> None:
    p, q = (each["id"] for each in callers.marcus.get("/projects").json())
    own = add(callers.project, description="own")
    assert own["project_id"] == p
    foreign = add(callers.marcus, description="foreign", project_id=q)
    nobodys = add(callers.marcus, description="nobody's")

    assert listed(callers.project) == ["own"]
    assert [each["name"] for each in callers.project.get("/projects").json()] == ["p"]
    body = {"type": "x", "description": "y", "project_id": q}
    refused(callers.project.post("/work", json=body), 403, "forbidden")
    refused(callers.project.get("/work", params={"project_id": q}), 403, "forbidden")
    refused(callers.project.get(f"/projects/{q}"), 403, "forbidden")
    refused(callers.project.patch(f"/projects/{q}", json={"name": "r"}), 403, "forbidden")
    refused(callers.project.patch(f"/projects/{p}", json={"name": "r"}), 403, "forbidden")
    for item in (foreign, nobodys):
        refused(callers.project.get(f"/work/{item['id']}"), 403, "forbidden")
        refused(callers.project.delete(f"/work/{item['id']}"), 403, "forbidden")
        assert tried(callers.project, item, notes="x") == 403
    assert change(callers.project, own, notes="x")["notes"] == "x"


@pytest.mark.requirement("B10")
def test_a_token_with_the_scope_read_cannot_change_anything(callers: Callers) -> None:
    item = add(callers.marcus)
    assert listed(callers.reader) == [item["description"]]
    assert get(callers.reader, item)["id"] == item["id"]
    assert tried(callers.reader, item, notes="x") == 403
    refused(callers.reader.delete(f"/work/{item['id']}"), 403, "forbidden")
    refused(callers.reader.post("/work", json={}), 403, "forbidden")
