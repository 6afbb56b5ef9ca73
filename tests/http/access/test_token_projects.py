"""A token for a project stays with that project, even if projects are renamed."""

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import until
from tests.drivers.http.tokens import Closed, create
from tests.drivers.http.v1 import code_of, enqueue

ALL = ("read", "enqueue", "work", "operate")
FORBIDDEN = (403, "forbidden")


class Renamed:
    """A token whose project was renamed, and a new project that has its name now."""

    def __init__(self, guarded: Closed, name: str) -> None:
        self.admin = guarded.client(guarded.tokens["admin"])
        self.name = name
        self.own = self._make(name)
        self.token = guarded.client(create(guarded.sql, f"for-{name}", *ALL, project=name))
        # The server knows the token, and what its project was called.
        self.first = enqueue(self.token)
        renamed = self.admin.patch(f"/projects/{self.own}", json={"name": f"{name}-before"})
        assert renamed.status_code == 200, renamed.text
        self.other = self._make(name)
        self.foreign = enqueue(self.admin, project=name)

    def _make(self, name: str) -> str:
        made = self.admin.post("/projects", json={"name": name})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def project_of(self, task_id: str) -> str:
        return str(self.admin.get(f"/v1/tasks/{task_id}").json()["project_id"])


@pytest.mark.requirement("B10")
def test_it_reaches_its_own_tasks_and_none_of_the_project_with_the_name(guarded: Closed) -> None:
    found = Renamed(guarded, "site")

    def look() -> None:
        listed = {each["id"] for each in found.token.get("/v1/tasks").json()["items"]}
        assert found.first in listed
        assert found.foreign not in listed
        assert code_of(found.token.get(f"/v1/tasks/{found.foreign}")) == FORBIDDEN
        assert found.token.get(f"/v1/tasks/{found.first}").status_code == 200
        assert [each["id"] for each in found.token.get("/projects").json()] == [found.own]
        assert code_of(found.token.get(f"/projects/{found.other}")) == FORBIDDEN
        body = {"type": "x", "description": "y", "project_id": found.other}
        assert code_of(found.token.post("/work", json=body)) == FORBIDDEN

    # With what the server remembers of the token, and after it has looked again.
    look()
    until(lambda: knows(found.token, "site-before"))
    look()


@pytest.mark.requirement("B10")
def test_its_new_tasks_belong_to_its_own_project(guarded: Closed) -> None:
    found = Renamed(guarded, "shop")

    made = [enqueue(found.token)]
    named = found.token.post("/v1/tasks", json={"type": "code", "project": "shop"})
    if named.status_code == 201:
        made.append(named.json()["id"])
    plan = {"name": "plan", "tasks": [{"name": "a", "type": "code"}]}
    dag = found.token.post("/v1/dags", json=plan)
    made += dag.json()["tasks"]
    item = found.token.post("/work", json={"type": "x", "description": "y"}).json()

    assert {found.project_of(each) for each in made} == {found.own}
    assert item["project_id"] == found.own
    until(lambda: knows(found.token, "shop-before"))
    other = found.token.post("/v1/tasks", json={"type": "code", "project": "shop"})
    assert code_of(other) == FORBIDDEN


def knows(token: httpx2.Client, name: str) -> bool:
    """Whether the server has learned what the project of a token is called now."""
    return token.post("/v1/tasks", json={"type": "code", "project": name}).status_code == 201


def test_a_project_that_does_not_exist_cannot_have_a_token(guarded: Closed) -> None:
    with pytest.raises(psycopg.Error, match="there is no project 'nowhere'") as raised:
        create(guarded.sql, "nobody", *ALL, project="nowhere")

    assert raised.value.sqlstate == "TR208"


def test_the_list_of_tokens_shows_what_the_project_is_called_now(guarded: Closed) -> None:
    Renamed(guarded, "mall")

    query = "select project from treadle.token_status where name = 'for-mall'"
    assert guarded.sql.execute(query).fetchone() == ("mall-before",)


@pytest.mark.requirement("B10")
def test_a_token_for_an_agent_lists_no_event_that_it_cannot_place(guarded: Closed) -> None:
    admin = guarded.client(guarded.tokens["admin"])
    agent = guarded.client(create(guarded.sql, "agent-a", *ALL, agent="a"))
    free = enqueue(admin)
    theirs = enqueue(admin, assigned_agent="b")
    gone = enqueue(admin)
    plan = {"name": "plan", "tasks": [{"name": "x", "type": "code", "assigned_agent": "b"}]}
    foreign_dag = admin.post("/v1/dags", json=plan).json()["id"]
    mine = {"name": "plan", "tasks": [{"name": "x", "type": "code"}]}
    own_dag = admin.post("/v1/dags", json=mine).json()["id"]
    add = "insert into treadle.events (kind, task_id, dag_id, key) values (%s, %s, %s, 'seen')"
    rows = [
        ("own.task", free, None),
        ("other.task", theirs, None),
        ("gone.task", gone, None),
        ("own.dag", None, own_dag),
        ("other.dag", None, foreign_dag),
        ("gone.dag", None, "00000000-0000-0000-0000-000000000001"),
        ("about.nothing", None, None),
    ]
    for row in rows:
        guarded.sql.execute(add, row)
    guarded.sql.execute("delete from treadle.tasks where id = %s", [gone])

    seen = agent.get("/v1/events", params={"key": "seen"}).json()["items"]
    everything = admin.get("/v1/events", params={"key": "seen"}).json()["items"]

    assert {each["kind"] for each in everything} == {row[0] for row in rows}
    assert {each["kind"] for each in seen} == {"own.task", "own.dag"}
    assert code_of(agent.get("/v1/events/stream")) == FORBIDDEN
