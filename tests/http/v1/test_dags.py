"""DAGs over HTTP: create, list, start, cancel and retry."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, register, take_one
from treadle.api.v1 import dags as models

PLAN: dict[str, Any] = {
    "name": "page",
    "tasks": [
        {"name": "research", "type": "research", "spec": {"topic": "rivals"}},
        {"name": "build", "type": "code", "inputs": {"brief": "task:research:output"}},
        {"name": "test", "type": "test", "after": [{"task": "build", "optional": True}]},
    ],
}


def make(http: httpx2.Client, **said: Any) -> dict[str, Any]:
    return shaped(models.CreatedDag, http.post("/v1/dags", json={**PLAN, **said}), 201)


def test_a_dag_is_created_completely_and_can_be_read(http: httpx2.Client) -> None:
    answer = http.post("/v1/dags", json={**PLAN, "meta": {"ticket": 7}, "budget_usd": 2.5})
    made = shaped(models.CreatedDag, answer, 201)
    assert answer.headers["location"] == f"/v1/dags/{made['id']}"

    dag = shaped(models.Dag, http.get(answer.headers["location"]))
    tasks = listed(models.DagTask, http.get(f"/v1/dags/{made['id']}/tasks"))

    assert (dag["status"], dag["tasks"], dag["ready"], dag["pending"]) == ("running", 3, 1, 2)
    assert (dag["meta"], dag["budget_usd"], dag["created_by"]) == ({"ticket": 7}, 2.5, "local")
    assert [task["id"] for task in tasks] == made["tasks"]
    assert [task["name"] for task in tasks] == ["research", "build", "test"]
    assert tasks[2]["depends_on"][0]["id"] == made["tasks"][1]
    assert tasks[2]["depends_on"][0]["optional"] is True


def test_all_that_can_be_said_of_a_task_arrives(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("select treadle.define_gate('g')")
    node = {
        "priority": 7, "delay_s": 60, "deadline_at": "2099-01-01T00:00:00Z", "timeout_s": 5,
        "max_attempts": 4, "ageing_rate": 0.5, "retry": {"strategy": "fixed"}, "title": "t",
        "capabilities": ["git"], "assigned_agent": "a", "consumer": "me", "tags": ["x"],
        "source": "s", "source_job": "j", "external_ref": "r", "notes": "n", "max_cost_usd": 1.5,
        "max_tokens": 100, "on_budget": "fail", "validation": [{"validator": "not_empty"}],
        "report": "optional", "output_type": "json", "models": ["m"],
        "fallback_models": ["f"], "gates": ["g"],
        "concurrency_key": "c", "concurrency_limit": 2,
    }  # fmt: skip
    known = set(models.NodeOptions.model_fields)
    others = {"type", "queue", "spec", "urgency", "tier", "run_at", "project", "project_id"}
    others |= {"idempotency_key", "after", "inputs"}
    assert set(node) | others == known

    made = make(http, tasks=[{"type": "code"}], defaults=node)

    row = sql.execute(
        "select priority, title, tags, external_ref, concurrency_key, run_at > created_at"
        " from treadle.task_details where id = %s",
        [made["tasks"][0]],
    ).fetchone()
    assert row == (7, "t", ["x"], "r", "c", True)


def test_a_second_dag_with_a_key_is_the_first_one(http: httpx2.Client) -> None:
    first = make(http, key="k")

    again = http.post("/v1/dags", json={**PLAN, "key": "k"})

    assert shaped(models.CreatedDag, again) == {**first, "created": False}


def test_a_repeated_request_makes_one_dag(http: httpx2.Client, sql: Conn) -> None:
    answers = [
        http.post("/v1/dags", json=PLAN, headers={"Idempotency-Key": "once"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotent-replayed"] == "true"
    assert sql.execute("select count(*) from treadle.dags").fetchone() == (1,)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tasks": []}, (422, "invalid-argument")),
        ({"tasks": [{"type": "code", "color": "red"}]}, (422, "invalid-argument")),
        ({"tasks": [{"type": "code", "priority": "5"}]}, (422, "invalid-argument")),
        ({"tasks": [{"type": "code", "title": "\x00"}]}, (422, "invalid-argument")),
        ({"tasks": [{"type": "code", "spec": {"a": "\x00"}}]}, (422, "invalid-argument")),
        ({"tasks": [{"type": "code", "after": ["nobody"]}]}, (422, "invalid-argument")),
        ({"tasks": [{"type": "nothing"}]}, (404, "unknown-type")),
        ({"tasks": [{"type": "code", "queue": "nowhere"}]}, (404, "unknown-queue")),
        (
            {
                "tasks": [
                    {"name": "a", "type": "code", "after": ["b"]},
                    {"name": "b", "type": "code", "after": ["a"]},
                ]
            },
            (409, "cycle"),
        ),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(
    http: httpx2.Client, sql: Conn, change: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code_of(http.post("/v1/dags", json={**PLAN, **change})) == expected
    assert sql.execute("select count(*) from treadle.tasks").fetchone() == (0,)


def test_dags_are_listed_page_by_page_and_by_state(http: httpx2.Client) -> None:
    ids = [make(http, hold=number == 1)["id"] for number in range(3)]

    assert [row["id"] for row in walked(http, "/v1/dags")] == ids[::-1]
    assert [row["id"] for row in walked(http, "/v1/dags", status="open")] == [ids[1]]
    assert [row["name"] for row in walked(http, f"/v1/dags/{ids[0]}/tasks")] == [
        "research", "build", "test",
    ]  # fmt: skip


def test_a_held_dag_is_started_once(http: httpx2.Client) -> None:
    made = make(http, hold=True)
    path = f"/v1/dags/{made['id']}"
    assert http.get(path).json()["status"] == "open"

    for _ in range(2):
        done = shaped(models.Started, http.post(f"{path}/start"))
        assert done == {"id": made["id"], "tasks": 3}
    assert http.get(path).json()["status"] == "running"


def test_what_is_left_is_cancelled_with_a_reason_and_runs_again(
    http: httpx2.Client, sql: Conn
) -> None:
    made = make(http)
    register(http, queues=["default"])
    act(http, take_one(http), "complete", output={"ok": True})
    path = f"/v1/dags/{made['id']}"

    gone = shaped(models.CancelledDag, http.post(f"{path}/cancel", json={"reason": "not needed"}))
    assert gone == {"id": made["id"], "cancelled": 2}
    assert http.get(path).json()["status"] == "cancelled"
    found = sql.execute(
        "select distinct failure_reason from treadle.tasks where status = 'cancelled'"
    ).fetchall()
    assert ("not needed",) in found

    back = shaped(models.Retried, http.post(f"{path}/retry", json={"note": "needed after all"}))
    assert back == {"id": made["id"], "retried": 2}
    assert http.get(path).json()["completed"] == 1


@pytest.mark.parametrize("verb", ["start", "cancel", "retry"])
def test_an_unknown_dag_is_not_found(http: httpx2.Client, verb: str) -> None:
    missing = (404, "dag-not-found")
    assert code_of(http.get(f"/v1/dags/{UNKNOWN_ID}")) == missing
    assert code_of(http.get(f"/v1/dags/{UNKNOWN_ID}/tasks")) == missing
    assert code_of(http.post(f"/v1/dags/{UNKNOWN_ID}/{verb}")) == missing
    assert code_of(http.post(f"/v1/dags/nonsense/{verb}")) == (422, "invalid-argument")


def test_a_body_with_unknown_fields_is_rejected(http: httpx2.Client) -> None:
    made = make(http)
    answer = http.post(f"/v1/dags/{made['id']}/cancel", json={"because": "x"})
    assert code_of(answer) == (422, "invalid-argument")
    assert http.get(f"/v1/dags/{made['id']}").json()["status"] == "running"
