"""Create one object of each kind, so that generated requests find something."""

from pathlib import Path
from typing import Any

import httpx2

from tests.drivers.http.v1 import act, enqueue, register, take_one

NAME = "seeded"
BASE = Path(__file__).with_name("schemathesis.toml")


def furnish(http: httpx2.Client) -> dict[str, list[Any]]:
    """Create one object of each kind; return values for the path parameters."""
    register(http, NAME, queues=["default"])
    put(http, f"/v1/types/{NAME}")
    put(http, f"/v1/gates/{NAME}")
    put(http, f"/v1/concurrency-keys/{NAME}", limit=2)
    put(http, f"/v1/schedules/{NAME}", cron="@daily", task={"type": "code"})
    put(http, f"/v1/triggers/{NAME}", on="x", task={"type": "code"})
    put(http, f"/v1/webhooks/{NAME}", url="https://example.org/")
    budget = put(http, "/v1/budgets", scope="type", key="code", limit_usd=1000)
    post(http, f"/v1/schedules/{NAME}/run")
    post(http, "/v1/webhooks/in/x")
    dead = enqueue(http, max_attempts=1)
    dag = post(http, "/v1/dags", name="d", tasks=[{"type": "code"}, {"type": "test"}])
    claims = [take_one(http, NAME) for _ in range(3)]
    for claim in claims:
        assert act(http, claim, "start").status_code == 200
    failed = next(claim for claim in claims if claim["id"] == dead)
    assert act(http, failed, "fail", error="no").status_code == 200
    running = next(claim for claim in claims if claim["id"] != dead)
    asked = act(http, running, "ask", name="q", question="Really?").json()
    work = post(http, "/work", type="code_review", description="Look at it")
    return {
        "task_id": [dead, running["id"], *dag["tasks"], harness_task(http)],
        "dag_id": [dag["id"]],
        "letter_id": [dead],
        "wait_id": [asked["wait_id"]],
        "agent_id": [NAME],
        "name": [NAME],
        "key": [NAME],
        "queue": ["default"],
        "type": ["code", NAME],
        "budget_id": [budget["id"]],
        "queue_id": [post(http, "/api/queue/task", prompt="Fix it")["queue_id"]],
        "item_id": [work["id"]],
        "project_id": [post(http, "/projects", name="p")["id"]],
    }


def harness_task(http: httpx2.Client) -> str:
    task = post(http, "/harness/tasks", agent_url="http://localhost:9000", payload={})
    return str(task["task_id"])


def put(http: httpx2.Client, path: str, **said: Any) -> dict[str, Any]:
    return _done(http.put(path, json=said))


def post(http: httpx2.Client, path: str, **said: Any) -> dict[str, Any]:
    return _done(http.post(path, json=said))


def _done(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text
    return dict(answer.json())


def write_config(path: Path, values: dict[str, list[Any]]) -> None:
    """The settings of schemathesis, with values that half of the generated requests use."""
    known = {f"path.{name}": (found, 0.5) for name, found in values.items()}
    # No request waits here.
    known |= {f"{place}.wait_seconds": ([0], 1.0) for place in ("body", "query")}
    lines = [BASE.read_text()]
    for name, (found, _) in known.items():
        lines.append(f"[dictionaries.{_plain(name)}]\nvalues = {found!r}\n")
    lines.append("[parameters]")
    lines.extend(
        f'"{name}" = {{ dictionary = "{_plain(name)}", probability = {share} }}'
        for name, (_, share) in known.items()
    )
    path.write_text("\n".join(lines) + "\n")


def _plain(name: str) -> str:
    return name.replace(".", "_")
