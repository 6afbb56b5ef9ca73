"""The fields of a task have the same bounds over HTTP as in treadle.fields."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.drivers.fields import BOUNDED, FIELDS, SEEDS, allowed, beside, cases, label, refused
from tests.drivers.http.servers import Conn
from tests.drivers.http.v1 import code_of
from treadle.api.v1.tasks import Filter
from treadle.fields import Field, TaskFilter, fields_of, uses_of

PLACES: dict[str, tuple[str, str, Callable[[dict[str, Any]], Any], str]] = {
    "task": ("POST", "/v1/tasks", lambda said: {"type": "code", **said}, "/"),
    "node": (
        "POST",
        "/v1/dags",
        lambda said: {"name": "d", "tasks": [{"type": "code", **said}]},
        "/tasks/0/",
    ),
    "type": ("PUT", "/v1/types/code", lambda said: said, "/"),
    "queue": ("PUT", "/v1/queues/default", lambda said: said, "/"),
}


@pytest.fixture
def client(http: httpx2.Client, sql: Conn) -> httpx2.Client:
    sql.execute(SEEDS.encode())
    return http


def send(http: httpx2.Client, use: str, field: Field, value: Any) -> httpx2.Response:
    method, path, wrap, _ = PLACES[use]
    return http.request(method, path, json=wrap({**beside(field), field.wire: value}))


@pytest.mark.parametrize("use", PLACES)
def test_the_ends_of_the_bounds_are_accepted(client: httpx2.Client, use: str) -> None:
    for field, value in cases(allowed):
        if use in uses_of(field):
            answer = send(client, use, field, value)
            assert answer.status_code in (200, 201), (field.wire, answer.text)


@pytest.mark.parametrize("use", PLACES)
def test_a_value_beyond_a_bound_is_rejected_with_its_place(client: httpx2.Client, use: str) -> None:
    base = PLACES[use][3]
    for field, value in cases(refused):
        if use in uses_of(field):
            answer = send(client, use, field, value)
            assert code_of(answer) == (422, "invalid-argument"), field.wire
            pointer = answer.json()["errors"][0]["pointer"]
            assert f"{pointer}/".startswith(f"{base}{field.wire}/"), (field.wire, pointer)


@pytest.mark.parametrize("use", ["node", "type", "queue"])
def test_a_field_is_refused_where_it_cannot_be_set(client: httpx2.Client, use: str) -> None:
    # A queue has a setting of this name too.
    others = [each for each in FIELDS if use not in uses_of(each) and each.wire != "hold"]
    for field in others:
        answer = send(client, use, field, True)
        assert code_of(answer) == (422, "invalid-argument"), field.wire
        assert "errors" in answer.json(), field.wire


@pytest.mark.parametrize("field", [each for each in BOUNDED if each.has("edit")], ids=label)
def test_a_change_has_the_same_bounds(client: httpx2.Client, field: Field) -> None:
    task_id = client.post("/v1/tasks", json={"type": "code"}).json()["id"]
    for verb, said in {"retry": {}, "fork": {"from_step": "s"}}.items():
        for value in refused(field):
            body = {**said, "changes": {field.wire: value}}
            answer = client.post(f"/v1/tasks/{task_id}/{verb}", json=body)
            assert code_of(answer) == (422, "invalid-argument")
            pointer = answer.json()["errors"][0]["pointer"]
            assert f"{pointer}/".startswith(f"/changes/{field.wire}/")


def test_null_inside_of_a_retry_policy_overrides_that_of_the_type(client: httpx2.Client) -> None:
    client.put("/v1/types/code", json={"retry": {"retry_on": ["timeout"]}})
    shown = []
    for policy in ({}, {"retry_on": None}):
        made = client.post("/v1/tasks", json={"type": "code", "retry": policy}).json()
        shown.append(client.get(f"/v1/tasks/{made['id']}").json()["retry"]["retry_on"])

    assert shown == [["timeout"], None]


def test_a_filter_has_the_keys_of_the_reference() -> None:
    assert set(Filter.model_fields) == {field.wire for field in fields_of(TaskFilter)}
