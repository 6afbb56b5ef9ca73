"""The work API as documented: projects, items, the flow of a dispatch."""

from datetime import datetime
from uuid import UUID, uuid4

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.work import add, brought, change, get, listed, refused

FIELDS = {
    *("id", "project_id", "type", "description", "payload", "priority", "status"),
    *("assigned_agent", "created_by", "created_at", "updated_at", "completed_at", "outcome"),
    "notes",
}


@pytest.mark.requirement("W1")
def test_projects_are_made_listed_read_and_changed(http: httpx2.Client) -> None:
    body = {"name": "Shopping List API", "external_ref": "todoist:123"}
    answer = http.post("/projects", json=body)
    assert answer.status_code == 201
    project = answer.json()
    assert {name: project[name] for name in body} == body
    assert project.keys() == {"id", "name", "external_ref", "created_at", "updated_at"}
    assert str(UUID(project["id"])) == project["id"]
    assert datetime.fromisoformat(project["created_at"]).utcoffset() is not None
    other = http.post("/projects", json={"name": "Other"}).json()
    assert other["external_ref"] is None

    assert http.get("/projects").json() == [project, other]
    assert http.get(f"/projects/{project['id']}").json() == project

    changed = http.patch(f"/projects/{project['id']}", json={"name": "Shopping"})
    assert changed.status_code == 200
    found = changed.json()
    assert (found["name"], found["external_ref"]) == ("Shopping", "todoist:123")
    assert found["created_at"] == project["created_at"]
    assert found["updated_at"] > project["updated_at"]
    cleared = http.patch(f"/projects/{project['id']}", json={"external_ref": None}).json()
    assert (cleared["name"], cleared["external_ref"]) == ("Shopping", None)
    same = http.patch(f"/projects/{project['id']}", json={"name": None}).json()
    assert same == cleared


@pytest.mark.requirement("W1")
def test_two_projects_may_be_called_alike(http: httpx2.Client) -> None:
    bodies = [{"name": "A", "external_ref": ref} for ref in ("x", "x", None)]
    made = [http.post("/projects", json=body) for body in bodies]
    assert [each.status_code for each in made] == [201, 201, 201]
    assert [{**each.json(), **body} for each, body in zip(made, bodies, strict=True)] == [
        each.json() for each in made
    ]
    assert len({each.json()["id"] for each in made}) == 3
    b = http.post("/projects", json={"name": "B"}).json()
    assert http.patch(f"/projects/{b['id']}", json={"name": "A"}).json()["name"] == "A"
    assert [each["name"] for each in http.get("/projects").json()] == ["A"] * 4


@pytest.mark.requirement("W1")
def test_a_project_whose_answer_was_lost_is_made_once(http: httpx2.Client) -> None:
    key = {"Idempotency-Key": "shop"}
    first, again = (http.post("/projects", json={"name": "A"}, headers=key) for _ in range(2))
    assert first.json() == again.json()
    assert len(http.get("/projects").json()) == 1


@pytest.mark.requirement("W1")
def test_a_missing_or_unnamed_project_is_rejected(http: httpx2.Client) -> None:
    refused(http.get(f"/projects/{uuid4()}"), 404, "unknown-project")
    refused(http.patch(f"/projects/{uuid4()}", json={"name": "C"}), 404, "unknown-project")
    refused(http.post("/projects", json={"name": "  "}), 422, "invalid-argument")


@pytest.mark.requirement("W2")
def test_an_item_is_made_with_all_its_fields_and_queued(http: httpx2.Client) -> None:
    project = http.post("/projects", json={"name": "Shopping List API"}).json()
    body = {
        "project_id": project["id"],
        "type": "code_review",
        "description": "Review PR #3 in shopping-list-api",
        "payload": {"pr": 3, "repo": "shopping-list-api"},
        "priority": 2,
        "assigned_agent": "steve-w",
        "created_by": "gitea-watcher",
        "colour": "ignored",
    }
    answer = http.post("/work", json=body)
    assert answer.status_code == 201
    item = answer.json()
    assert item.keys() == FIELDS
    body.pop("colour")
    assert {name: item[name] for name in body} == body
    assert item["status"] == "queued"
    assert (item["completed_at"], item["outcome"], item["notes"]) == (None, None, None)
    assert item["created_at"] == item["updated_at"]
    assert answer.headers["location"] == f"/work/{item['id']}"


@pytest.mark.requirement("W2")
def test_an_item_needs_a_type_and_a_description_and_nothing_else(http: httpx2.Client) -> None:
    item = add(http)
    assert (item["priority"], item["payload"], item["project_id"]) == (3, {}, None)
    assert (item["assigned_agent"], item["created_by"]) == (None, "local")

    long = "Read all of it. " * 300
    assert add(http, description=long)["description"] == long


@pytest.mark.requirement("W4", "W9")
def test_an_agent_processes_its_queue_and_the_history_shows_it(http: httpx2.Client) -> None:
    item = add(http, assigned_agent="steve-w")
    assert listed(http, agent="steve-w", status="dispatched") == []
    change(http, item, status="dispatched", assigned_agent="steve-w")

    [mine] = http.get("/work?agent=steve-w&status=dispatched").json()
    change(http, mine, status="in_progress")
    ended = change(
        http, mine, status="completed", outcome="success", notes="Reviewed and approved, merged"
    )

    assert (ended["status"], ended["outcome"]) == ("completed", "success")
    assert ended["notes"] == "Reviewed and approved, merged"
    found = get(http, item)
    [dispatch] = found.pop("dispatch_history")
    changes = found.pop("changes")
    assert found == ended
    assert dispatch["agent"] == "steve-w"
    assert dispatch["work_item_id"] == item["id"]
    assert (dispatch["outcome"], dispatch["completed_at"]) == ("success", ended["completed_at"])
    assert item["created_at"] < dispatch["dispatched_at"] < ended["completed_at"]
    assert [(each["from_status"], each["to_status"]) for each in changes] == [
        (None, "queued"),
        ("queued", "dispatched"),
        ("dispatched", "in_progress"),
        ("in_progress", "completed"),
    ]
    assert {each["actor"] for each in changes} == {"local"}


@pytest.mark.requirement("W4", "W9")
def test_each_agent_that_got_an_item_is_in_its_history(http: httpx2.Client) -> None:
    item = brought(http, "dispatched")
    change(http, item, assigned_agent="maria-k")
    change(http, item, status="in_progress")
    change(http, item, status="blocked", notes="maria is ill")
    change(http, item, status="in_progress", assigned_agent="paul-b")
    change(http, item, status="failed", outcome="failed", notes="cannot be done")

    history = get(http, item)["dispatch_history"]
    assert [(each["agent"], each["outcome"]) for each in history] == [
        ("steve-w", None),
        ("maria-k", None),
        ("paul-b", "failed"),
    ]


@pytest.mark.requirement("W6")
def test_an_item_is_deleted_by_being_cancelled(http: httpx2.Client) -> None:
    item = brought(http, "dispatched")
    answer = http.delete(f"/work/{item['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    found = get(http, item)
    assert (found["status"], found["outcome"]) == ("cancelled", "cancelled")
    assert found["completed_at"] is not None
    assert found["dispatch_history"][0]["outcome"] == "cancelled"

    assert http.delete(f"/work/{item['id']}").status_code == 204
    assert get(http, item) == found
    problem = refused(
        http.delete(f"/work/{brought(http, 'in_progress')['id']}"), 409, "illegal-transition"
    )
    assert problem["allowed"] == ["blocked", "completed", "failed"]
    refused(http.delete(f"/work/{uuid4()}"), 404, "work-item-not-found")


@pytest.mark.requirement("W8")
def test_an_end_and_an_outcome_exist_in_end_states_only(http: httpx2.Client) -> None:
    for status in ("queued", "dispatched", "blocked"):
        item = brought(http, status)
        assert (item["completed_at"], item["outcome"]) == (None, None)
        problem = refused(
            http.patch(f"/work/{item['id']}", json={"outcome": "success", "notes": "x"}),
            422,
            "invalid-argument",
        )
        assert problem["argument"] == "outcome"
    for status, outcome in (
        ("completed", "success"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
    ):
        item = brought(http, status)
        assert item["outcome"] == outcome
        assert item["completed_at"] is not None


@pytest.mark.requirement("W4")
def test_of_very_many_changes_the_newest_are_shown(http: httpx2.Client, sql: Conn) -> None:
    item = brought(http, "dispatched")
    sql.execute(
        "select treadle.update_work_item(%s, jsonb_build_object('notes', n::text))"
        " from generate_series(1, 250) as n",
        (item["id"],),
    )

    found = get(http, item)

    assert [each["note"] for each in found["changes"]] == [str(n) for n in range(51, 251)]
    assert [each["agent"] for each in found["dispatch_history"]] == ["steve-w"]
