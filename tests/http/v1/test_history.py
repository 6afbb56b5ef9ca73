"""Archived tasks and retention ages over HTTP."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.bound_tokens import FORBIDDEN, Callers, bound
from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import act, code_of, enqueue, register, take_one
from treadle.api.v1 import retention as models

UNKNOWN_ID = "01890000-0000-7000-8000-00000000dead"
KEEP_NONE = "select treadle.define_queue(%s, '{\"keep_completed_s\": 0}')"


def archived(http: httpx2.Client, sql: Conn, queue: str = "default", **said: object) -> str:
    """The id of a task that ended and was pruned."""
    register(http, queues=[queue])
    task_id = enqueue(http, queue=queue, **said)
    claim = take_one(http, queues=[queue])
    act(http, claim, "steps", name="fetch", output=7)
    assert act(http, claim, "complete", output={"pages": 3}).status_code == 200
    sql.execute(KEEP_NONE, (queue,))
    sql.execute("select treadle.prune_tasks()")
    assert http.get(f"/v1/tasks/{task_id}").status_code == 404
    return task_id


@pytest.mark.requirement("B9")
def test_an_archived_task_is_shown_with_all_that_belonged_to_it(
    http: httpx2.Client, sql: Conn
) -> None:
    task_id = archived(http, sql, title="nightly", spec={"n": 1})

    shown = shaped(models.ArchivedTask, http.get(f"/v1/history/{task_id}"))

    assert (shown["id"], shown["status"], shown["completed_by"]) == (task_id, "completed", "a")
    assert (shown["task"]["spec"], shown["task"]["output"]) == ({"n": 1}, {"pages": 3})
    assert [(each["name"], each["output"]) for each in shown["steps"]] == [("fetch", 7)]


def test_archived_tasks_are_listed_the_newest_first(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("select treadle.define_queue('mail')")
    first, second = archived(http, sql), archived(http, sql)
    mail = archived(http, sql, "mail")

    found = listed(models.Archived, http.get("/v1/history"))

    assert [row["id"] for row in found] == [mail, second, first]
    assert [row["id"] for row in walked(http, "/v1/history")] == [mail, second, first]
    one = http.get("/v1/history", params={"queue": "mail", "type": "code"})
    assert [row["id"] for row in one.json()["items"]] == [mail]
    assert http.get("/v1/history", params={"type": "other"}).json()["items"] == []


def test_the_error_of_a_missing_task_names_the_archive(http: httpx2.Client) -> None:
    missing = http.get(f"/v1/tasks/{UNKNOWN_ID}")

    assert code_of(missing) == (404, "task-not-found")
    assert "GET /v1/history" in missing.text
    assert code_of(http.get(f"/v1/history/{UNKNOWN_ID}")) == (404, "task-not-found")


def kept(http: httpx2.Client) -> dict[tuple[str | None, str], float | None]:
    answer = http.get("/v1/retention")
    shaped(models.Ages, answer)
    return {(row["queue"], row["what"]): row["keep_s"] for row in answer.json()["items"]}


def test_how_long_things_are_kept_is_shown_and_changed(http: httpx2.Client, sql: Conn) -> None:
    assert kept(http)[None, "events"] is None

    changed = http.put("/v1/retention/events", json={"keep_s": 86400})

    assert changed.status_code == 200
    assert kept(http)[None, "events"] == 86400
    assert sql.execute("select actor, data from treadle.events").fetchall() == [
        ("local", {"kind": "events", "keep_s": 86400})
    ]
    http.put("/v1/retention/events", json={"keep_s": None})
    assert kept(http)[None, "events"] is None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("events", {}),
        ("events", {"keep_s": -1}),
        ("events", {"keep_s": "30d"}),
        ("events", {"keep_s": 1, "mode": "drop"}),
        ("tasks", {"keep_s": 1}),
    ],
)
def test_an_age_that_cannot_be_is_refused(
    http: httpx2.Client, kind: str, said: dict[str, object]
) -> None:
    before = kept(http)

    assert code_of(http.put(f"/v1/retention/{kind}", json=said)) == (422, "invalid-argument")

    assert kept(http) == before


@pytest.fixture(scope="module")
def callers(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callers]:
    with bound(new_database, tmp_path_factory.mktemp("bound")) as found:
        yield found


@pytest.mark.requirement("B10")
def test_a_token_for_a_queue_sees_its_history_and_no_other(callers: Callers) -> None:
    theirs = archived(callers.admin, callers.sql)
    own = archived(callers.admin, callers.sql, "mail")

    found = callers.mail.get("/v1/history").json()["items"]
    assert [row["id"] for row in found] == [own]
    assert callers.mail.get("/v1/history", params={"queue": "default"}).json()["items"] == []
    assert callers.mail.get(f"/v1/history/{own}").status_code == 200
    assert code_of(callers.mail.get(f"/v1/history/{theirs}")) == FORBIDDEN
    queues = {row["queue"] for row in callers.mail.get("/v1/retention").json()["items"]}
    assert queues == {"mail", None}
    for bound_to in (callers.agent, callers.project):
        assert code_of(bound_to.get("/v1/history")) == FORBIDDEN
        assert code_of(bound_to.get(f"/v1/history/{own}")) == FORBIDDEN
    for partial in (callers.mail, callers.project):
        change = partial.put("/v1/retention/runs", json={"keep_s": 1})
        assert code_of(change) == FORBIDDEN
