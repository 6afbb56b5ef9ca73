"""Any invalid body of the work API gets a problem document and never a 5xx."""

import json
from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.work import add, brought, change, get, refused

NEW = {"type": "bug_fix", "description": "Fix it"}
VALUES: dict[str, list[Any]] = {
    "priority": [0, 6, -1, 2.5, "2", True, 2**80],
    "type": ["", "bug fix", "a\x00b", "x" * 101, 7, None],
    "description": ["", "  ", "a\x00b", "\ud800", "x" * 20_001, None, 3],
    "payload": [[], "{}", 3, {"a": "\x00"}, {"a": "\ud800"}, {"\x00": 1}],
    "assigned_agent": [" ", "a\x00", "\udfff", "x" * 201, "é" * 201, 5],
    "created_by": [" ", "\x00", "x" * 201],
    "project_id": ["p", 3, " "],
}
WRONG = [{name: value} for name, values in VALUES.items() for value in values]
CHANGES: list[dict[str, Any]] = [
    {},
    {"colour": "red"},
    {"status": "done"},
    {"status": 3},
    {"status": ["queued"]},
    {"status": "completed", "outcome": "great"},
    {"notes": "a\x00b"},
    {"notes": "\ud800"},
    {"notes": "x" * 20_001},
    {"notes": {"text": "x"}},
    {"status": "", "outcome": "", "assigned_agent": "", "unless_updated_since": ""},
    {"assigned_agent": " "},
    {"assigned_agent": "é" * 201},
    {"unless_updated_since": "2026-01-01T00:00:00Z"},
    {"notes": "x", "unless_updated_since": "soon"},
]


def sent(http: httpx2.Client, method: str, path: str, body: object) -> httpx2.Response:
    """A body as JSON, half surrogates and all."""
    return http.request(
        method, path, content=json.dumps(body), headers={"Content-Type": "application/json"}
    )


@pytest.mark.requirement("W1", "W2")
@pytest.mark.parametrize("letter", ["x", "é", "𝄞"])
def test_texts_are_limited_in_characters(http: httpx2.Client, letter: str) -> None:
    texts = {"description": 20_000, "assigned_agent": 200, "created_by": 200}
    item = add(http, **{name: letter * most for name, most in texts.items()})
    assert {name: len(item[name]) for name in texts} == texts
    assert len(change(http, item, notes=letter * 20_000)["notes"]) == 20_000
    project = {"name": letter * 200, "external_ref": letter * 1000}
    made = http.post("/projects", json=project)
    assert (made.status_code, made.json().items() >= project.items()) == (201, True)

    for name, most in texts.items():
        answer = http.post("/work", json={**NEW, name: letter * (most + 1)})
        refused(answer, 422, "invalid-argument")
    answer = http.patch(f"/work/{item['id']}", json={"notes": letter * 20_001})
    refused(answer, 422, "invalid-argument")
    for name, text in project.items():
        answer = http.post("/projects", json={**project, name: text + letter})
        refused(answer, 422, "invalid-argument")


@pytest.mark.requirement("W2")
def test_an_item_that_cannot_be_is_refused_and_not_made(http: httpx2.Client, sql: Conn) -> None:
    for wrong in WRONG:
        refused(sent(http, "POST", "/work", {**NEW, **wrong}), 422, "invalid-argument")
    for missing in NEW:
        rest = {name: value for name, value in NEW.items() if name != missing}
        problem = refused(http.post("/work", json=rest), 422, "invalid-argument")
        assert problem["errors"][0]["pointer"] == f"/{missing}"

    nobody = "00000000-0000-7000-8000-000000000000"
    refused(http.post("/work", json={**NEW, "project_id": nobody}), 404, "unknown-project")
    large = {**NEW, "payload": {"text": "x" * 1_100_000}}
    refused(http.post("/work", json=large), 413, "too-large")
    assert sql.execute("select count(*) from treadle.tasks").fetchone() == (0,)


NO_OBJECTS = ("", "{", "[]", "3", '"x"', "null", '{"type": "x", "description": NaN}', "[" * 100_000)


@pytest.mark.requirement("W2")
def test_a_body_that_is_not_an_object_is_rejected(http: httpx2.Client) -> None:
    for text in NO_OBJECTS:
        for path in ("/work", "/projects"):
            answer = http.post(path, content=text, headers={"Content-Type": "application/json"})
            assert answer.status_code in (400, 422), answer.text
            assert answer.headers["content-type"] == "application/problem+json"


def test_a_payload_that_is_too_deep_or_holds_no_numbers_is_refused(http: httpx2.Client) -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    assert http.post("/work", json={**NEW, "payload": deep}).status_code == 422
    text = '{"type": "x", "description": "y", "payload": {"n": 1e400}}'
    answer = http.post("/work", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text


@pytest.mark.requirement("W5")
def test_a_change_that_cannot_be_is_refused_and_not_made(http: httpx2.Client) -> None:
    item = brought(http, "dispatched")
    before = get(http, item)

    for wrong in CHANGES:
        answer = sent(http, "PATCH", f"/work/{item['id']}", wrong)
        refused(answer, 422, "invalid-argument")

    assert get(http, item) == before


def test_the_error_uses_the_field_names_of_the_caller(http: httpx2.Client) -> None:
    json_type = {"Content-Type": "application/json"}
    said = {
        "agent": http.post("/work", json={**NEW, "assigned_agent": "x" * 201}),
        "half": http.post("/work", content='{"type":', headers=json_type),
        "list": http.post("/work", json=[]),
        "none": http.post("/work"),
        "packed": http.post(
            "/work", content=b"x", headers={**json_type, "Content-Encoding": "gzip"}
        ),
        "since": http.get("/work", params={"since": "20261117T000000Z"}),
        "type": http.post("/work", json={**NEW, "type": "Bug fix"}),
        "visible": http.post("/work", json={**NEW, "description": " "}),
    }

    assert {name: answer.json()["detail"] for name, answer in said.items()} == {
        "agent": "/assigned_agent: Text should have at most 200 characters, not 201",
        "half": ("the body cannot be read as JSON: EOF while parsing a value at line 1 column 8"),
        "list": "Input should be a valid dictionary or object to extract fields from",
        "none": "the request needs a body",
        "packed": "send the body as JSON, not compressed, with Content-Type: application/json",
        "since": "query/since: must be ISO 8601 with dashes and colons: 2026-01-31T12:00:00Z",
        "type": "/type: must be 1 to 100 letters, digits and _ . : / -, without spaces",
        "visible": "/description: must not be blank",
    }
    # The whole document, as a JSON pointer says it.
    assert said["list"].json()["errors"][0]["pointer"] == ""


def test_hints_name_http_routes(http: httpx2.Client) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"
    said = {
        "project": http.post("/work", json={**NEW, "project_id": nobody}),
        "item": http.patch(f"/work/{nobody}", json={"notes": "x"}),
        "long": http.post("/work", json={**NEW, "assigned_agent": "é" * 201}),
    }

    assert {name: answer.json().get("hint") for name, answer in said.items()} == {
        "project": "To list projects: GET /projects, or select * from treadle.project_list",
        "item": "To list them: GET /work, or select * from treadle.work_items",
        "long": None,
    }


def test_null_is_the_same_as_not_named(http: httpx2.Client) -> None:
    empty = {"priority": None, "payload": None, "project_id": None, "assigned_agent": None}
    item = add(http, **empty, created_by=None)
    assert (item["priority"], item["payload"]) == (3, {})

    body = {"status": None, "outcome": None, "assigned_agent": None, "notes": "x"}
    found = http.patch(f"/work/{item['id']}", json=body).json()
    assert (found["status"], found["notes"]) == ("queued", "x")
    refused(http.patch(f"/work/{item['id']}", json={"notes": None}), 422, "invalid-argument")


@pytest.mark.requirement("W2", "W5")
def test_an_empty_text_is_the_same_as_not_named_where_nothing_can_be_empty(
    http: httpx2.Client,
) -> None:
    item = add(http, project_id="", assigned_agent="", created_by="")
    assert (item["project_id"], item["assigned_agent"]) == (None, None)
    assert item["created_by"]

    change(http, item, assigned_agent="steve-w", notes="x")
    zeros = {"outcome": "", "assigned_agent": "", "unless_updated_since": ""}
    found = change(http, item, status="dispatched", **zeros)
    assert (found["status"], found["assigned_agent"]) == ("dispatched", "steve-w")
    # Notes can be: that takes them away.
    assert change(http, item, status="", notes="")["notes"] == ""
