"""Transitions of work items: all pairs of states, required fields, and repeats."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.work import STATES, Item, add, brought, change, get, refused

ALLOWED = {
    "queued": ["cancelled", "dispatched"],
    "dispatched": ["cancelled", "in_progress"],
    "in_progress": ["blocked", "completed", "failed"],
    "blocked": ["in_progress"],
    "completed": [],
    "failed": [],
    "cancelled": [],
}
OUTCOMES = {"completed": "success", "failed": "failed", "cancelled": "cancelled"}


def full(status: str) -> Item:
    """A change to a state that lacks nothing."""
    body = {"status": status, "notes": "because", "assigned_agent": "steve-w"}
    return {**body, "outcome": OUTCOMES[status]} if status in OUTCOMES else body


@pytest.mark.requirement("W5")
@pytest.mark.parametrize("start", STATES)
def test_from_each_state_the_listed_ones_follow_and_no_other(
    http: httpx2.Client, start: str
) -> None:
    stuck = brought(http, start)
    before = get(http, stuck)
    for goal in STATES:
        if goal == start or goal in ALLOWED[start]:
            continue
        for body in (full(goal), {"status": goal}):
            problem = refused(
                http.patch(f"/work/{stuck['id']}", json=body), 409, "illegal-transition"
            )
            assert problem["allowed"] == ALLOWED[start]
            assert (problem["from"], problem["to"]) == (start, goal)
            assert problem["work_item_id"] == stuck["id"]
    assert get(http, stuck) == before
    http.patch(f"/work/{stuck['id']}", json={"status": "blocked", "notes": "for the next one"})

    for goal in ALLOWED[start]:
        item = brought(http, start)
        found = http.patch(f"/work/{item['id']}", json=full(goal))
        assert found.status_code == 200, found.text
        assert found.json()["status"] == goal
        assert found.json()["outcome"] == OUTCOMES.get(goal)
        # An agent has one item: let it go for the next one.
        http.patch(f"/work/{item['id']}", json={"status": "blocked", "notes": "done here"})


@pytest.mark.requirement("W5")
@pytest.mark.parametrize(
    ("start", "body", "missing"),
    [
        ("queued", {"status": "dispatched"}, "assigned_agent"),
        ("in_progress", {"status": "completed"}, "outcome"),
        ("in_progress", {"status": "completed", "outcome": None}, "outcome"),
        ("in_progress", {"status": "failed", "notes": "no"}, "outcome"),
        ("in_progress", {"status": "blocked"}, "notes"),
        ("in_progress", {"status": "blocked", "notes": " \n"}, "notes"),
        ("in_progress", {"status": "completed", "outcome": "failed"}, "outcome"),
        ("in_progress", {"status": "failed", "outcome": "success"}, "outcome"),
        ("in_progress", {"status": "blocked", "notes": "x", "outcome": "failed"}, "outcome"),
        ("dispatched", {"status": "in_progress", "outcome": "success"}, "outcome"),
    ],
)
def test_a_change_that_lacks_something_is_refused(
    http: httpx2.Client, start: str, body: dict[str, Any], missing: str
) -> None:
    item = brought(http, start)
    before = get(http, item)

    problem = refused(http.patch(f"/work/{item['id']}", json=body), 422, "invalid-argument")

    assert problem["argument"] == missing
    assert get(http, item) == before


@pytest.mark.requirement("W2", "W5")
def test_an_agent_named_when_the_item_was_made_is_enough_to_dispatch_it(
    http: httpx2.Client,
) -> None:
    item = add(http, assigned_agent="steve-w")
    assert change(http, item, status="dispatched")["assigned_agent"] == "steve-w"


@pytest.mark.requirement("W5")
def test_several_fields_change_at_once_or_not_at_all(http: httpx2.Client) -> None:
    item = brought(http, "queued")
    found = change(http, item, status="dispatched", assigned_agent="maria-k", notes="urgent")
    assert (found["status"], found["assigned_agent"], found["notes"]) == (
        "dispatched",
        "maria-k",
        "urgent",
    )
    body = {"status": "completed", "outcome": "success", "notes": "lost", "assigned_agent": "x"}
    refused(http.patch(f"/work/{item['id']}", json=body), 409, "illegal-transition")
    assert change(http, item, notes="later")["assigned_agent"] == "maria-k"


@pytest.mark.requirement("W5")
@pytest.mark.parametrize("status", STATES)
def test_notes_change_in_every_state_and_count_as_an_update(
    http: httpx2.Client, status: str
) -> None:
    item = brought(http, status)
    found = change(http, item, notes="see the ticket")
    assert (found["status"], found["notes"]) == (status, "see the ticket")
    assert found["updated_at"] > item["updated_at"]
    assert found["completed_at"] == item["completed_at"]


@pytest.mark.requirement("W5")
@pytest.mark.parametrize("status", ["in_progress", "completed", "failed", "cancelled"])
def test_an_item_that_an_agent_has_or_had_is_not_given_to_another(
    http: httpx2.Client, status: str
) -> None:
    item = brought(http, status, assigned_agent="steve-w")
    body = {"assigned_agent": "maria-k", "notes": "x"}
    refused(http.patch(f"/work/{item['id']}", json=body), 409, "illegal-transition")
    assert get(http, item)["assigned_agent"] == "steve-w"


@pytest.mark.requirement("W5")
@pytest.mark.parametrize("status", STATES)
def test_a_repeated_change_is_not_an_error_and_changes_nothing(
    http: httpx2.Client, status: str
) -> None:
    item = brought(http, status)
    before = get(http, item)
    body = {"status": status}
    if status in OUTCOMES:
        body["outcome"] = OUTCOMES[status]

    answer = http.patch(f"/work/{item['id']}", json=body)

    if status == "in_progress":
        # Starting a started item is a conflict: only one of two callers succeeds.
        assert refused(answer, 409, "illegal-transition")["allowed"] == ALLOWED[status]
    else:
        assert (answer.status_code, answer.json()) == (200, item)
    assert get(http, item) == before


@pytest.mark.requirement("W5", "W7")
def test_starting_an_item_can_be_repeated_only_with_the_same_key(http: httpx2.Client) -> None:
    item = brought(http, "dispatched")
    path, body = f"/work/{item['id']}", {"status": "in_progress"}
    first = http.patch(path, json=body, headers={"Idempotency-Key": "poller-1"})
    again = http.patch(path, json=body, headers={"Idempotency-Key": "poller-1"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    other = http.patch(path, json=body, headers={"Idempotency-Key": "poller-2"})
    refused(other, 409, "illegal-transition")


@pytest.mark.requirement("W2")
def test_an_item_that_is_asked_for_again_with_its_key_is_made_once(http: httpx2.Client) -> None:
    body = {"type": "bug_fix", "description": "Once"}
    made = [
        http.post("/work", json=body, headers={"Idempotency-Key": "one"}).json() for _ in range(2)
    ]
    assert made[0] == made[1]
    assert len(http.get("/work").json()) == 1


@pytest.mark.requirement("W5")
def test_an_item_that_changed_after_it_was_read_is_left_alone(http: httpx2.Client) -> None:
    item = brought(http, "in_progress")
    read = item["updated_at"]
    change(http, item, notes="still at it")
    body = {"status": "blocked", "notes": "silent", "unless_updated_since": read}
    problem = refused(http.patch(f"/work/{item['id']}", json=body), 409, "illegal-transition")
    assert "changed since" in problem["detail"]

    body["unless_updated_since"] = get(http, item)["updated_at"]
    assert change(http, item, **body)["status"] == "blocked"


@pytest.mark.requirement("W5")
def test_an_unknown_item_is_not_found(http: httpx2.Client) -> None:
    path = f"/work/{uuid4()}"
    refused(http.get(path), 404, "work-item-not-found")
    refused(http.patch(path, json={"notes": "x"}), 404, "work-item-not-found")
    refused(http.get("/work/nonsense"), 422, "invalid-argument")


@pytest.mark.requirement("W5", "W9")
def test_an_item_is_not_released_past_its_dispatcher(http: httpx2.Client) -> None:
    item = brought(http, "queued")

    problem = refused(http.post(f"/v1/tasks/{item['id']}/release"), 409, "illegal-transition")

    assert "PATCH /work/{id}" in problem["hint"]
    assert get(http, item)["changes"][-1]["to_status"] == "queued"
