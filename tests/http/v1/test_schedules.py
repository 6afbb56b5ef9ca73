"""Schedules over HTTP: create, run, pause, resume, delete."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import code_of
from treadle.api.v1 import schedules as models

NIGHTLY: dict[str, Any] = {
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "task": {"type": "code", "spec": {"depth": 2}},
}


def define(http: httpx2.Client, name: str = "nightly", **said: Any) -> dict[str, Any]:
    return shaped(models.Schedule, http.put(f"/v1/schedules/{name}", json={**NIGHTLY, **said}))


def test_a_schedule_is_defined_and_shown(http: httpx2.Client) -> None:
    made = define(http, jitter_s=60, catch_up="skip", overlap="skip", grace_s=10)
    assert (made["state"], made["makes"], made["what"], made["queue"]) == (
        "active", "task", "code", "default",
    )  # fmt: skip
    assert (made["created_by"], made["overlap"], made["grace_s"]) == ("local", "skip", 10)
    assert shaped(models.Schedule, http.get("/v1/schedules/nightly")) == made


def test_absent_fields_keep_their_values(http: httpx2.Client) -> None:
    before = define(http)
    after = shaped(models.Schedule, http.put("/v1/schedules/nightly", json={"grace_s": 5}))
    assert after["grace_s"] == 5
    assert (after["cron"], after["template"]) == (before["cron"], before["template"])


def test_schedules_are_listed_by_name(http: httpx2.Client) -> None:
    for name in ("b", "a", "team/c"):
        define(http, name)
    assert [row["name"] for row in walked(http, "/v1/schedules")] == ["a", "b", "team/c"]
    listed(models.Schedule, http.get("/v1/schedules"))


def test_an_extra_run_makes_its_task_and_is_recorded(http: httpx2.Client, sql: Conn) -> None:
    define(http, "team/nightly")
    made = shaped(models.CreatedBySchedule, http.post("/v1/schedules/team/nightly/run"), 201)
    assert made["created"] is True
    task = http.get(f"/v1/tasks/{made['task_id']}").json()
    assert (task["type"], task["spec"]) == ("code", {"depth": 2})

    http.post("/v1/schedules/team/nightly/run")
    runs = listed(models.ScheduleRun, http.get("/v1/schedules/team/nightly/runs"))
    assert [(run["status"], run["actor"]) for run in runs] == [("queued", "local")] * 2
    assert runs[1]["task_id"] == made["task_id"]
    assert len(walked(http, "/v1/schedules/team/nightly/runs")) == 2


def test_a_repeated_run_makes_one_task(http: httpx2.Client, sql: Conn) -> None:
    define(http)
    for _ in range(2):
        http.post("/v1/schedules/nightly/run", headers={"Idempotency-Key": "k"})
    assert sql.execute("select count(*) from treadle.tasks").fetchone() == (1,)


@pytest.mark.requirement("Q10")
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
def test_a_run_at_capacity_is_refused_and_its_status_kept(
    http: httpx2.Client, sql: Conn, headers: dict[str, str]
) -> None:
    define(http, task={"queue": "push", "spec": {"prompt": "hello"}})
    sql.execute("""select treadle.define_queue('push', '{"max_depth": 1}')""")
    assert http.post("/v1/schedules/nightly/run", headers=headers).status_code == 201

    other = {name: f"{value}2" for name, value in headers.items()}
    full = http.post("/v1/schedules/nightly/run", headers=other)

    assert code_of(full) == (503, "queue-full")
    shown = http.get("/v1/schedules/nightly").json()
    assert shown["last_status"] == "skipped_queue_full"
    [last, _] = listed(models.ScheduleRun, http.get("/v1/schedules/nightly/runs"))
    assert (last["status"], last["actor"]) == ("skipped_queue_full", "local")


def test_a_schedule_may_make_a_dag(http: httpx2.Client) -> None:
    plan = {"name": "weekly", "tasks": [{"type": "code"}, {"type": "test", "after": ["code"]}]}
    body = {"cron": "@weekly", "dag": plan}
    made = shaped(models.Schedule, http.put("/v1/schedules/weekly", json=body))
    assert made["makes"] == "dag"
    ran = http.post("/v1/schedules/weekly/run").json()
    assert http.get(f"/v1/dags/{ran['dag_id']}").json()["tasks"] == 2


def test_a_schedule_is_paused_resumed_and_removed(http: httpx2.Client) -> None:
    define(http)
    paused = http.post("/v1/schedules/nightly/pause", json={"reason": "the source is down"})
    shown = shaped(models.Schedule, paused)
    assert (shown["state"], shown["paused_by"]) == ("paused", "local")
    assert shown["paused_reason"] == "the source is down"
    resumed = shaped(models.Schedule, http.post("/v1/schedules/nightly/resume"))
    assert resumed["state"] == "active"

    assert http.delete("/v1/schedules/nightly").status_code == 204
    assert code_of(http.get("/v1/schedules/nightly")) == (404, "unknown-schedule")


@pytest.mark.parametrize(
    "said",
    [
        {"cron": "99 2 * * *"},
        {"cron": "0 0 30 2 *"},
        {"cron": "whenever"},
        {"timezone": "Mars/Olympus"},
        {"overlap": "maybe"},
        {"jitter_s": "5"},
        {"jitter_s": -1},
        {"task": {"type": "code", "color": "red"}},
        {"task": {"type": "code"}, "dag": {"name": "x", "tasks": [{"type": "code"}]}},
        {"task": {"type": "code", "spec": {"a": "\x00"}}},
        {"color": "red"},
    ],
)
def test_what_cannot_be_is_refused(http: httpx2.Client, said: dict[str, Any]) -> None:
    answer = http.put("/v1/schedules/nightly", json={**NIGHTLY, **said})
    assert code_of(answer) == (422, "invalid-argument")
    assert code_of(http.get("/v1/schedules/nightly")) == (404, "unknown-schedule")


def test_a_schedule_of_an_unknown_type_is_refused(http: httpx2.Client) -> None:
    answer = http.put("/v1/schedules/x", json={**NIGHTLY, "task": {"type": "nothing"}})
    assert code_of(answer) == (404, "unknown-type")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/runs"), ("POST", "/run"), ("POST", "/pause"), ("POST", "/resume"),
     ("DELETE", "")],
)  # fmt: skip
def test_an_unknown_schedule_is_not_found(http: httpx2.Client, method: str, path: str) -> None:
    answer = http.request(method, f"/v1/schedules/nobody{path}")
    assert code_of(answer) == (404, "unknown-schedule")
