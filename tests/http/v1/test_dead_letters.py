"""Dead letters over HTTP: list, show, and resolve one or many."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, status_of, take_one
from treadle.api.v1 import dead_letters as models


@pytest.fixture
def letters(http: httpx2.Client) -> list[str]:
    """The tasks of three dead letters, two of them with the same error."""
    register(http, queues=["default"])
    ids: list[str] = []
    for error in ("no such file 1", "no such file 2", "out of paper"):
        ids.append(enqueue(http, max_attempts=1, spec={"n": len(ids)}))
        failed = act(http, take_one(http), "fail", error=error)
        assert failed.status_code == 200, failed.text
    return ids


def resolve(http: httpx2.Client, task_id: str, **said: Any) -> httpx2.Response:
    return http.post(f"/v1/dead-letters/{task_id}/resolve", json=said)


def test_letters_are_listed_newest_first_and_filtered(
    http: httpx2.Client, letters: list[str]
) -> None:
    rows = listed(models.DeadLetter, http.get("/v1/dead-letters"))
    assert [row["task_id"] for row in rows] == letters[::-1]
    assert rows[0]["history"][0]["error"] == "out of paper"
    assert [row["id"] for row in walked(http, "/v1/dead-letters")] == [row["id"] for row in rows]

    group = rows[1]["fingerprint"]
    same = http.get("/v1/dead-letters", params={"group": group}).json()["items"]
    assert [row["task_id"] for row in same] == letters[1::-1]
    for wrong in ({"queue": "x"}, {"type": "x"}, {"class": "x"}, {"poison": True},
                  {"escalated": True}, {"before": "2020-01-01T00:00:00Z"}):  # fmt: skip
        assert http.get("/v1/dead-letters", params=wrong).json()["items"] == []
    refused = http.get("/v1/dead-letters", params={"before": "12"})
    assert code_of(refused) == (422, "invalid-argument")


def test_groups_show_the_error(http: httpx2.Client, letters: list[str]) -> None:
    groups = listed(models.DeadLetterGroup, http.get("/v1/dead-letters/groups"))
    assert sorted(group["letters"] for group in groups) == [1, 2]
    assert len(walked(http, "/v1/dead-letters/groups")) == 2


def test_a_letter_is_shown_by_its_id_or_that_of_its_task(
    http: httpx2.Client, letters: list[str]
) -> None:
    by_task = shaped(models.DeadLetterDetails, http.get(f"/v1/dead-letters/{letters[0]}"))
    by_letter = shaped(models.DeadLetterDetails, http.get(f"/v1/dead-letters/{by_task['id']}"))
    assert by_task == by_letter
    assert (by_task["task_id"], by_task["spec"]) == (letters[0], {"n": 0})
    assert code_of(http.get(f"/v1/dead-letters/{UNKNOWN_ID}")) == (404, "not-found")


def test_a_letter_is_retried_once(http: httpx2.Client, letters: list[str]) -> None:
    done = shaped(models.Resolved, resolve(http, letters[0], resolution="retry", note="it is back"))
    assert (done["verdict"], done["status"]) == ("retried", "ready")

    again = resolve(http, letters[0], resolution="cancel")
    assert code_of(again) == (409, "illegal-transition")
    assert again.json()["verdict"] == "already"
    assert status_of(http, letters[0]) == "ready"
    log = listed(models.DecisionLogEntry, http.get("/v1/dead-letters/log"))
    assert [(row["decision"], row["actor"], row["note"]) for row in log] == [
        ("retry", "local", "it is back")
    ]
    shown = http.get(f"/v1/dead-letters/{letters[0]}").json()
    assert (shown["reviewed"], shown["decisions"]) == (True, log)
    assert len(http.get("/v1/dead-letters").json()["items"]) == 2
    assert len(http.get("/v1/dead-letters", params={"reviewed": True}).json()["items"]) == 3


def test_a_letter_is_cancelled_changed_or_escalated(
    http: httpx2.Client, letters: list[str]
) -> None:
    gone = shaped(models.Resolved, resolve(http, letters[0], resolution="cancel"))
    assert (gone["verdict"], gone["status"]) == ("cancelled", "cancelled")

    changes = {"set": {"n": 7}, "priority": 3, "max_attempts": 2}
    changed = resolve(http, letters[1], resolution="modify", changes=changes, delay_s=60)
    assert shaped(models.Resolved, changed)["verdict"] == "retried"
    task = http.get(f"/v1/tasks/{letters[1]}").json()
    assert (task["spec"], task["priority"], task["status"]) == ({"n": 7}, 3, "pending")

    given = shaped(models.Resolved, resolve(http, letters[2], resolution="escalate", to="ops"))
    assert given["verdict"] == "escalated"
    [left] = http.get("/v1/dead-letters", params={"escalated": True}).json()["items"]
    assert (left["task_id"], left["escalated_to"]) == (letters[2], "ops")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"resolution": "forget"},
        {"resolution": "modify"},
        {"resolution": "retry", "changes": {"priority": 1}},
        {"resolution": "modify", "changes": {"color": "red"}},
        {"resolution": "escalate"},
        {"resolution": "retry", "to": "ops"},
        {"resolution": "cancel", "delay_s": 5},
        {"resolution": "retry", "note": "\x00"},
        {"resolution": "retry", "by": "somebody else"},
    ],
)
def test_an_invalid_decision_changes_nothing(
    http: httpx2.Client, letters: list[str], said: dict[str, Any]
) -> None:
    assert code_of(resolve(http, letters[0], **said)) == (422, "invalid-argument")
    assert status_of(http, letters[0]) == "dead_lettered"


def test_an_unknown_letter_is_not_found(http: httpx2.Client) -> None:
    assert code_of(resolve(http, UNKNOWN_ID, resolution="retry")) == (404, "not-found")


def many(http: httpx2.Client, **said: Any) -> httpx2.Response:
    return http.post("/v1/dead-letters/resolve", json={"resolution": "retry", **said})


def test_many_are_decided_about_by_their_ids(http: httpx2.Client, letters: list[str]) -> None:
    resolve(http, letters[1], resolution="cancel")

    done = many(http, ids=[letters[0], letters[1], letters[0], UNKNOWN_ID]).json()

    assert (done["done"], done["dry_run"]) == (1, False)
    found = {item["id"]: item["verdict"] for item in done["items"]}
    assert found == {letters[0]: "retried", letters[1]: "already", UNKNOWN_ID: "unknown"}
    for item in done["items"]:
        models.Resolved.model_validate(item)


def test_many_are_counted_before_they_are_decided_about(
    http: httpx2.Client, letters: list[str]
) -> None:
    group = http.get(f"/v1/dead-letters/{letters[0]}").json()["fingerprint"]

    counted = many(http, filter={"group": group}, dry_run=True).json()
    assert (counted["done"], counted["counts"][0]["letters"]) == (0, 2)
    assert counted["counts"][0]["verdict"] == "found"
    models.LetterCount.model_validate(counted["counts"][0])
    assert status_of(http, letters[0]) == "dead_lettered"

    done = many(http, filter={"group": group}).json()
    assert done["done"] == 2
    assert [status_of(http, each) for each in letters] == ["ready", "ready", "dead_lettered"]
    assert many(http, filter={}, resolution="cancel").json()["done"] == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, 422),
        ({"ids": []}, 422),
        ({"ids": [UNKNOWN_ID], "filter": {}}, 422),
        ({"ids": [UNKNOWN_ID], "dry_run": True}, 422),
        ({"filter": {"color": "red"}}, 422),
        ({"filter": {"dead_before": "soon"}}, 422),
        ({"filter": {"queue": "nowhere"}}, 404),
    ],
)
def test_a_bulk_decision_that_is_not_clear_changes_nothing(
    http: httpx2.Client, letters: list[str], said: dict[str, Any], expected: int
) -> None:
    assert many(http, **said).status_code == expected
    assert len(http.get("/v1/dead-letters").json()["items"]) == 3
