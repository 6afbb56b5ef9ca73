"""Many dead letters are selected by a filter, counted, and resolved in batches."""

import re
from typing import Any

import psycopg
import pytest

from tests.drivers.dead_letters import (
    dead,
    decisions,
    letter_of,
    resolve,
    resolve_where,
    where_rows,
)
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle
from treadle.db.dead_letters import Decision
from treadle.errors import InvalidArgument

pytestmark = [pytest.mark.requirement("R3"), pytest.mark.requirement("F16")]


def test_a_dry_run_counts_by_group_and_changes_nothing(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(3)]
    dead(driver, "late", "timeout")

    with unchanged(driver):
        rows = where_rows(driver, {"queue": "default"}, dry_run=True, limit=1)

    group = letter_of(driver, tasks[0])["fingerprint"]
    assert [(r["letters"], r["verdict"], r["class"]) for r in rows] == [
        (3, "found", "error"),
        (1, "found", "timeout"),
    ]
    assert (rows[0]["fingerprint"], rows[0]["type"]) == (group, "code")


def test_a_group_is_decided_and_no_other_letter(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(3)]
    other = dead(driver, "no luck")
    group = letter_of(driver, tasks[0])["fingerprint"]

    found = resolve_where(driver, {"fingerprint": group}, actor="ada", note="fixed")

    assert found == {"retried": 3}
    assert {driver.state_of(each) for each in tasks} == {"ready"}
    assert driver.state_of(other) == "dead_lettered"
    kept = [decisions(driver, each) for each in tasks]
    assert [(d["actor"], d["note"], d["decision"]) for [d] in kept] == [
        ("ada", "fixed", "retry")
    ] * 3


@pytest.mark.parametrize(
    ("filters", "which"),
    [
        ({"queue": "mail"}, {"mail"}),
        ({"type": "test"}, {"test"}),
        ({"failure_class": "timeout"}, {"late"}),
        ({"poison": True}, {"poison"}),
        ({"poison": False, "dead_before": "1h"}, {"old"}),
        ({"dead_after": "1h", "type": "test"}, {"test"}),
        ({"escalated": True}, {"handed"}),
        ({"agent": "b"}, {"by b"}),
        (
            {"status": "dead_lettered"},
            {*("mail", "test", "late", "poison", "old", "handed", "by b")},
        ),
    ],
)
def test_what_a_filter_finds(driver: Driver, filters: dict[str, Any], which: set[str]) -> None:
    driver.rows("select treadle.define_queue('mail')")
    tasks = {
        "mail": dead(driver, queue="mail"),
        "test": dead(driver, type="test"),
        "late": dead(driver, "late", "timeout"),
        "poison": dead(driver),
        "old": dead(driver),
        "handed": dead(driver),
        "by b": dead(driver, agent="b"),
    }
    change = "update treadle.dead_letters set {} where task_id = %s"
    driver.rows(change.format("poison_pill = true"), tasks["poison"])
    driver.rows(
        change.format("dead_lettered_at = dead_lettered_at - interval '2 hours'"), tasks["old"]
    )
    resolve(driver, [tasks["handed"]], "escalate", to="ops")

    resolve_where(driver, filters, "cancel")

    gone = {name for name, task in tasks.items() if driver.state_of(task) == "cancelled"}
    assert gone == which


def test_letters_beyond_the_limit_are_left_for_the_next_call(
    driver: Driver,
) -> None:
    taken = dead(driver, key="k")
    driver.enqueue(key="k", hold=True)
    tasks = [dead(driver, f"no order {n}") for n in range(4)]

    first = where_rows(driver, {"queue": "default"}, limit=2)
    last = max(row["last_task"] for row in first if row["last_task"])
    second = where_rows(driver, {"queue": "default"}, limit=10, after=last)

    assert {r["verdict"]: r["letters"] for r in first} == {"refused": 1, "retried": 1, "left": 3}
    assert {r["verdict"]: r["letters"] for r in second} == {"retried": 3}
    assert driver.state_of(taken) == "dead_lettered"
    assert {driver.state_of(each) for each in tasks} == {"ready"}


def test_what_is_wanted_is_found_however_far_behind_the_rest_it_is(driver: Driver) -> None:
    first = dead(driver, "late", "timeout")
    for n in range(13):
        dead(driver, f"no order {n}")
    second, third = (dead(driver, "late", "timeout") for _ in range(2))

    found = resolve_where(driver, {"failure_class": "timeout"}, limit=2)

    assert found == {"retried": 2, "left": 1}
    assert [driver.state_of(each) for each in (first, second)] == ["ready", "ready"]
    assert resolve_where(driver, {"failure_class": "timeout"}, limit=2) == {"retried": 1}
    assert driver.state_of(third) == "ready"


async def test_a_decision_is_applied_in_batches_despite_rejected_letters(
    driver: Driver, app: Treadle
) -> None:
    for n in range(3):
        dead(driver, "no luck", key=f"k{n}")
        driver.enqueue(key=f"k{n}", hold=True)
        dead(driver, "no luck")

    told: list[int] = []
    found = await app.db.dead_letters.resolve_where(
        {"failure_class": "error"}, Decision("retry", by="ada"), batch=2, on_batch=told.append
    )

    assert told == [2, 4, 6]
    counts: dict[str, int] = {}
    for each in found:
        counts[each.verdict] = counts.get(each.verdict, 0) + each.letters
    assert counts == {"retried": 3, "refused": 3}
    [(after, before)] = driver.rows(
        "select count(*) filter (where resolution is null), count(*) from treadle.dead_letters"
    )
    assert (after, before) == (3, 6)


def test_a_call_again_finds_nothing_more(driver: Driver) -> None:
    dead(driver)
    filters = {"failure_class": "error"}
    assert resolve_where(driver, filters, "cancel") == {"cancelled": 1}

    with unchanged(driver):
        assert resolve_where(driver, filters, "cancel") == {}


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({}, "it is empty"),
        ([], "it must be a JSON object"),
        ("x", "it must be a JSON object"),
        (None, "it must be a JSON object"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"poison": "yes"}, "poison must be true or false"),
        ({"escalated": None}, "escalated must be true or false"),
        ({"fingerprint": ""}, "fingerprint must be a text"),
        ({"fingerprint": ["a"]}, "fingerprint must be a text"),
        ({"dead_before": "soon"}, "this filter cannot be used"),
        ({"dead_before": "infinity"}, "is not a valid time"),
        ({"poison": True, "status": "completed"}, "status must be one or more of dead_lettered"),
        ({"poison": True, "colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_a_filter_that_is_empty_unknown_or_malformed_is_refused(
    driver: Driver, filters: object, words: str
) -> None:
    dead(driver)

    with unchanged(driver), refused("TR001", words):
        resolve_where(driver, filters, "cancel")


def test_an_unknown_queue_and_a_limit_out_of_range_are_refused(driver: Driver) -> None:
    with refused("TR202", "there is no queue 'mial'"):
        resolve_where(driver, {"queue": "mial"})
    for limit in (0, 10001, None):
        with refused("TR001", "limit must be 1 to 10000"):
            resolve_where(driver, {"queue": "default"}, limit=limit)
    with refused("TR001", "unknown resolution 'shrug': use retry, modify_and_retry, cancel or"):
        resolve_where(driver, {"queue": "default"}, "shrug", dry_run=True)


def test_an_unknown_class_is_rejected_and_the_known_ones_are_listed(driver: Driver) -> None:
    classes = driver.value(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'attempts_class_check'"
    )
    known = ", ".join(sorted(re.findall(r"'(\w+)'", classes)))

    with unchanged(driver), refused("TR001", f"(?m)one of {known}$"):
        resolve_where(driver, {"failure_class": "nonsense"}, dry_run=True)
    for each in known.split(", "):
        assert resolve_where(driver, {"failure_class": each}, dry_run=True) == {}


def test_an_unknown_key_is_refused_with_all_that_letters_have(driver: Driver) -> None:
    with pytest.raises(psycopg.Error, match="unknown key 'dead_befor'") as raised:
        resolve_where(driver, {"dead_befor": "2h"})

    hint = raised.value.diag.message_hint or ""
    for key in ("queue", "fingerprint", "dead_before", "dead_after", "poison", "escalated"):
        assert f" {key}" in hint


async def test_an_invalid_id_is_rejected(app: Treadle) -> None:
    with pytest.raises(InvalidArgument, match="'nope' is not a valid task id"):
        await app.db.dead_letters.resolve(["nope"])
