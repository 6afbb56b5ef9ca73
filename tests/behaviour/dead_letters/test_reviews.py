"""People resolve dead letters, one or many; each decision is kept permanently."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.drivers.dags import shaped
from tests.drivers.dead_letters import dead, decisions, letter_of, resolve, verdicts
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle

pytestmark = [pytest.mark.requirement("R3"), pytest.mark.requirement("F16")]


@pytest.mark.parametrize(
    ("resolution", "more", "verdict", "status"),
    [
        ("retry", {}, "retried", "ready"),
        ("cancel", {}, "cancelled", "cancelled"),
        ("modify_and_retry", {"changes": {"priority": 3}}, "retried", "ready"),
        ("escalate", {"to": "ops"}, "escalated", "dead_lettered"),
    ],
)
def test_a_decision_is_applied_and_logged_with_reviewer_time_and_note(
    driver: Driver, resolution: str, more: dict[str, object], verdict: str, status: str
) -> None:
    task = dead(driver, "no order 17")
    driver.set_clock(timedelta(hours=3), stopped=True)

    done = resolve(driver, [task], resolution, note="because", **more)[task]

    assert (done["verdict"], done["status"], done["why"]) == (verdict, status, None)
    assert driver.state_of(task) == status
    [kept] = decisions(driver, task)
    assert (kept["decision"], kept["actor"], kept["note"]) == (resolution, "ada", "because")
    assert kept["at"] == driver.value("select treadle.clock()")
    assert (kept["changes"], kept["escalated_to"]) == (more.get("changes"), more.get("to"))
    letter = letter_of(driver, task)
    assert (kept["letter_id"], kept["fingerprint"]) == (letter["id"], letter["fingerprint"])
    assert (kept["about"], kept["type"], kept["queue"]) == ("no order <n>", "code", "default")
    assert letter["resolution"] == (None if resolution == "escalate" else resolution)


def test_every_way_to_decide_keeps_the_decision(driver: Driver) -> None:
    graph = shaped(driver, {"one": [], "two": []})
    graph.give_up("one")
    graph.give_up("two")
    driver.rows("select treadle.retry_dag(%s, 'bob', 'all of it')", graph.id)
    graph.give_up("one")
    graph.give_up("two")
    driver.rows("select treadle.cancel_dag(%s, 'enough', 'bob')", graph.id)
    single, many = dead(driver), dead(driver, "late", "timeout")
    driver.retry(single)
    driver.rows("""select treadle.retry_tasks_where('{"failure_class": "timeout"}', 'x', 'bob')""")

    kept = [[each["decision"] for each in decisions(driver, graph[name])] for name in graph.ids]
    assert kept == [["retry", "cancel"], ["retry", "cancel"]]
    assert [each["actor"] for each in decisions(driver, single)] == ["tester"]
    assert [each["actor"] for each in decisions(driver, many)] == ["bob"]


def test_a_repeated_decision_changes_nothing_and_names_the_first_reviewer(driver: Driver) -> None:
    task = dead(driver)
    resolve(driver, [task], "retry", note="it is back")

    with unchanged(driver):
        done = resolve(driver, [task], "cancel", actor="bob")[task]

    assert (done["verdict"], done["status"]) == ("already", "ready")
    assert done["why"].startswith("ada decided retry at ")
    assert done["why"].endswith(": it is back")


def test_the_id_of_a_letter_means_that_letter_and_no_later_one(driver: Driver) -> None:
    task = dead(driver)
    first = letter_of(driver, task)["id"]
    assert verdicts(driver, [first]) == {first: "retried"}
    driver.fail(driver.claim_one(), action="fail")
    second = letter_of(driver, task)["id"]

    done = resolve(driver, [first, second, task], "cancel")

    assert {each: row["verdict"] for each, row in done.items()} == {
        first: "already",
        second: "cancelled",
        task: "cancelled",
    }
    assert [each["letter_id"] for each in decisions(driver, task)] == [first, second]


def test_one_that_cannot_run_again_does_not_stop_the_others(driver: Driver) -> None:
    taken = dead(driver, key="k")
    driver.enqueue(key="k")
    fine, nothing, alive = dead(driver), uuid4(), driver.enqueue()

    done = resolve(driver, [taken, nothing, fine, alive])

    assert {each: row["verdict"] for each, row in done.items()} == {
        taken: "refused",
        nothing: "unknown",
        fine: "retried",
        alive: "unknown",
    }
    assert "another task now has the key 'k'" in done[taken]["why"]
    assert (driver.state_of(taken), driver.state_of(fine)) == ("dead_lettered", "ready")
    assert (decisions(driver, taken), letter_of(driver, taken)["resolution"]) == ([], None)


def test_cancelling_takes_dependents_along_and_the_dag_counts(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": []})
    graph.give_up("a")

    resolve(driver, [graph["a"]], "cancel", note="obsolete")

    assert graph.states() == {"a": "cancelled", "b": "cancelled", "c": "ready"}
    assert (graph.row["cancelled"], graph.row["dead_lettered"]) == (2, 0)


def test_retried_letters_of_a_dag_count_as_active_again(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})
    graph.give_up("a")

    resolve(driver, [graph["a"]])

    assert (graph.row["dead_lettered"], graph.row["status"]) == (0, "running")
    graph.complete("a", "b")
    assert graph.row["status"] == "completed"


def test_an_escalated_letter_stays_open_and_can_be_decided(driver: Driver) -> None:
    task = dead(driver)
    resolve(driver, [task], "escalate", to="ops", note="a new key?")

    [event] = [each for each in driver.events(task) if each["kind"] == "dead_letter.escalated"]
    letter = letter_of(driver, task)
    assert (letter["escalated_to"], letter["resolution"]) == ("ops", None)
    assert letter["escalated_at"] is not None
    assert (event["actor"], event["data"]["to"], event["data"]["note"]) == (
        *("ada", "ops", "a new key?"),
    )
    again = resolve(driver, [task], "escalate", to="ops")[task]
    assert (again["verdict"], again["why"]) == ("already", "it is already assigned to ops")
    assert verdicts(driver, [task], "escalate", to="the boss") == {task: "escalated"}
    assert verdicts(driver, [task], "cancel") == {task: "cancelled"}
    kept = [(each["decision"], each["escalated_to"]) for each in decisions(driver, task)]
    assert kept == [("escalate", "ops"), ("escalate", "the boss"), ("cancel", None)]


def test_a_retry_may_wait_until_later(driver: Driver) -> None:
    task = dead(driver)

    done = resolve(driver, [task], delay_s=3600)[task]

    assert (done["verdict"], done["status"]) == ("retried", "pending")
    assert decisions(driver, task)[0]["delay_s"] == 3600
    assert driver.claim() == []
    driver.promote()
    assert driver.state_of(task) == "pending"
    driver.set_clock(timedelta(hours=2))
    driver.promote()
    assert driver.claim_one().id == task


def test_a_delayed_retry_of_a_key_takes_its_slot_when_it_is_due(driver: Driver) -> None:
    task = dead(driver)
    driver.rows("update treadle.tasks set concurrency_key = 'k' where id = %s", task)

    resolve(driver, [task], delay_s=60)
    driver.rows("select treadle.admit_waiting_tasks()")
    assert driver.state_of(task) == "pending"
    driver.fall_due(task)
    driver.rows("select treadle.admit_waiting_tasks()")

    assert driver.claim_one().id == task


@pytest.mark.parametrize(
    ("resolution", "more", "words"),
    [
        ("shrug", {}, "unknown resolution 'shrug'"),
        ("modify_and_retry", {}, "cannot be combined with changes"),
        ("retry", {"changes": {"priority": 1}}, "cannot be combined with changes"),
        ("cancel", {"delay_s": 5}, "a delay must"),
        ("retry", {"delay_s": -1}, "a delay must"),
        ("retry", {"delay_s": float("nan")}, "a delay must"),
        ("escalate", {}, "to must be a name"),
        ("escalate", {"to": " "}, "to must be a name"),
        ("retry", {"to": "ops"}, "to must be a name"),
        ("modify_and_retry", {"changes": {"colour": 1}}, "unknown option 'colour'"),
        ("modify_and_retry", {"changes": {"run_at": "2030-01-01"}}, "unknown option 'run_at'"),
        ("retry", {"actor": ""}, "actor must have"),
        ("retry", {"note": "x" * 10001}, "note has 10001 characters"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused_before_anything(
    driver: Driver, resolution: str, more: dict[str, object], words: str
) -> None:
    task = dead(driver)

    with unchanged(driver), refused("TR001", words):
        resolve(driver, [task], resolution, **more)


@pytest.mark.parametrize(
    "statement",
    [
        "update treadle.dead_letter_decisions set note = 'never'",
        "delete from treadle.dead_letter_decisions",
        "truncate treadle.dead_letter_decisions",
    ],
)
def test_a_decision_cannot_be_changed_or_removed_even_by_a_superuser(
    driver: Driver, statement: str
) -> None:
    resolve(driver, [dead(driver)], "cancel")

    with unchanged(driver), refused("TR102", "decisions about dead letters are append-only"):
        driver.rows(statement)


def test_a_decision_outlives_its_task(driver: Driver) -> None:
    task = dead(driver)
    resolve(driver, [task], "cancel", note="obsolete")

    driver.rows("delete from treadle.dead_letters")
    driver.rows("delete from treadle.attempts")
    driver.rows("delete from treadle.tasks")

    [kept] = decisions(driver, task)
    assert (kept["decision"], kept["actor"], kept["note"]) == ("cancel", "ada", "obsolete")
    assert (kept["type"], kept["class"], kept["about"]) == ("code", "error", "boom")


async def test_an_application_decides_too(driver: Driver, app: Treadle) -> None:
    one, two, three = (dead(driver, f"no order {n}") for n in range(3))

    done = await app.db.dead_letters.resolve(
        [str(one)], "escalate", to="ops", by="ada", note="look"
    )
    looked = await app.db.dead_letters.resolve_where({"failure_class": "error"}, dry_run=True)
    later = await app.db.dead_letters.resolve_where({"escalated": False}, delay=60, by="ada")

    assert done[one].verdict == "escalated"
    assert [(each.verdict, each.letters) for each in looked] == [("found", 3)]
    assert [(each.verdict, each.letters) for each in later] == [("retried", 2)]
    assert [driver.state_of(each) for each in (one, two, three)] == [
        *("dead_lettered", "pending", "pending")
    ]
