"""`GET /status`: the counts of the queue, and the jobs that submit to it."""

import httpx2
import pytest

from tests.drivers.http.queue import claim, dispatch, submit
from tests.drivers.http.servers import Conn


@pytest.mark.requirement("Q13")
def test_the_status_shows_the_queue(http: httpx2.Client, sql: Conn) -> None:
    empty = http.get("/status").json()
    assert empty == {
        "type": "view",
        "interfaces": ["statusable", "observable", "taskable"],
        "version": empty["version"],
        "queue": {"depth": 0, "max_size": 50, "oldest_age_seconds": 0, "dispatched_count": 0},
    }
    for _ in range(4):
        submit(http)
    dispatch(sql)
    claim(sql)
    sql.execute("update treadle.tasks set created_at = created_at - interval '300 s'")

    queue = http.get("/status").json()["queue"]

    assert (queue["depth"], queue["dispatched_count"]) == (2, 2)
    assert 300 <= queue["oldest_age_seconds"] < 330


@pytest.mark.requirement("Q10", "Q13")
def test_the_status_shows_the_jobs_that_submit_to_the_queue(http: httpx2.Client) -> None:
    tasks = {
        "nightly": {"queue": "push", "spec": {"prompt": "x"}},
        "other": {"type": "code"},
    }
    submit(http)
    for name, task in tasks.items():
        assert http.put(f"/v1/schedules/{name}", json={"cron": "@daily", "task": task}).is_success
    job = {"name": "nightly", "last_status": None, "last_queue_id": None, "last_run": None}
    [before] = http.get("/status").json()["jobs"]
    assert {**before, **job} == before

    run = http.post("/v1/schedules/nightly/run").json()

    [after] = http.get("/status").json()["jobs"]
    assert (after["last_status"], after["last_queue_id"]) == ("queued", f"queue-{run['task_id']}")
    assert after.keys() == job.keys() | {"next_run"}
