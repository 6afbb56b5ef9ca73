"""`why` reports what a task waits for before an agent can claim it."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.drivers import waits
from tests.drivers.dags import shaped
from tests.drivers.engine import Driver
from tests.drivers.keys import limit
from tests.drivers.why import only, reasons, short

pytestmark = pytest.mark.requirement("B3")


def test_a_task_that_is_held_waits_for_its_release(driver: Driver) -> None:
    task = driver.enqueue(hold=True)

    row = only(driver, task)

    assert row["reason"] == "held"
    release = f"select treadle.release_held_tasks('{{{task}}}')"
    assert row["sentence"] == f"held: release it with: {release}"
    driver.rows(release)
    assert reasons(driver, task) == ["claimable"]


def test_a_task_of_a_dag_that_is_being_built_waits_for_its_start(driver: Driver) -> None:
    dag = driver.value("select treadle.open_dag('release')")
    task = driver.value("select treadle.add_task(%s, %s)", dag, Jsonb({"type": "code"}))

    row = only(driver, task)

    assert row["reason"] == "dag_open"
    assert row["sentence"].startswith(
        "DAG release is not started: start it with: treadle dags start"
    )
    assert row["detail"] == {"dag_id": str(dag), "dag": "release"}


def test_a_task_names_the_dependencies_that_are_not_done(driver: Driver) -> None:
    graph = shaped(
        driver, {"plan": [], "research": [], "build": [], "ship": ["plan", "research", "build"]}
    )
    driver.complete(driver.claim_one("a"))

    row = only(driver, graph["ship"])

    assert row["reason"] == "dependencies"
    assert row["sentence"] == "waiting for 2 of 3 dependencies: research, build"
    assert (row["detail"]["open"], row["detail"]["all"]) == (2, 3)
    assert row["detail"]["tasks"][0] == {
        "id": str(graph["research"]), "name": "research", "type": "code", "status": "ready",
    }  # fmt: skip


def test_a_dead_lettered_dependency_is_named_first_with_its_error(driver: Driver) -> None:
    graph = shaped(driver, {"plan": [], "build": [], "ship": ["plan", "build"]})
    graph.give_up("build")

    row = only(driver, graph["ship"])

    assert row["sentence"] == "waiting for 2 of 2 dependencies: build (dead-lettered: boom), plan"
    assert row["detail"]["tasks"][0]["status"] == "dead_lettered"


def test_a_dependency_that_was_cancelled_is_said(driver: Driver) -> None:
    graph = shaped(driver, {"plan": [], "ship": ["plan"]})
    # No call leaves it so; a hand in the tables can.
    driver.rows(
        "update treadle.tasks set status = 'cancelled', completed_at = now() where id = %s",
        graph["plan"],
    )

    assert only(driver, graph["ship"])["sentence"].endswith(": plan (was cancelled)")


def test_many_dependencies_are_counted(driver: Driver) -> None:
    graph = shaped(driver, {**{f"n{n}": [] for n in range(7)}, "ship": [f"n{n}" for n in range(7)]})

    row = only(driver, graph["ship"])

    assert row["sentence"].endswith(": n0, n1, n2, n3, n4 and 2 more")
    assert len(row["detail"]["tasks"]) == 7


def test_why_reports_when_a_delayed_task_is_due(driver: Driver) -> None:
    task = driver.enqueue(delay_s=180)

    row = only(driver, task)

    moment = driver.task(task)["run_at"]
    assert row["reason"] == "run_at"
    assert row["sentence"] == f"scheduled for {moment:%Y-%m-%d %H:%M:%S} UTC, in 3 min"
    assert row["until"] == moment


def test_why_reports_the_next_attempt_and_the_last_error(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    task = driver.enqueue(retry={"initial_delay_s": 40, "jitter": False})
    driver.fail(driver.claim_one("a"), "TimeoutError: too slow\n\nTraceback")

    row = only(driver, task)

    assert row["reason"] == "retry_at"
    assert row["sentence"] == "next attempt in 40 s, after: error: TimeoutError: too slow"
    assert row["until"] == driver.task(task)["retry_at"]
    assert (row["detail"]["attempt"], row["detail"]["class"]) == (1, "error")


@pytest.mark.parametrize("kind", ["retry", "time to run"])
def test_a_task_that_is_due_waits_for_the_promoter(driver: Driver, kind: str) -> None:
    task = driver.enqueue() if kind == "retry" else driver.enqueue(delay_s=60)
    if kind == "retry":
        driver.fail(driver.claim_one("a"))
    column = "retry_at" if kind == "retry" else "run_at"
    driver.rows(f"update treadle.tasks set {column} = '2026-01-02 03:04:05+00'")

    row = only(driver, task)

    assert row["reason"] == "promoter"
    assert row["sentence"] == (
        "due since 2026-01-02 03:04:05 UTC, but no promoter has processed it (treadle promoter)"
    )
    assert row["until"] is None
    driver.promote()
    assert reasons(driver, task) == ["claimable"]


def test_why_reports_an_open_question_and_how_to_answer_it(driver: Driver) -> None:
    claim, wait = waits.blocked(driver, {"question": "Deploy?", "expires_s": 600})
    driver.rows("update treadle.waits set opened_at = opened_at - interval '2 h'")

    row = only(driver, claim.id)

    assert row["reason"] == "question"
    command = f"treadle waits answer {str(wait)[-8:]}"
    assert row["sentence"] == f"waiting 2 h for an answer: Deploy? (answer with: {command})"
    assert row["until"] == waits.wait_of(driver, wait)["expires_at"]
    assert (row["detail"]["wait_id"], row["detail"]["question"]) == (str(wait), "Deploy?")
    waits.answer(driver, wait, "yes")
    assert reasons(driver, claim.id) == ["claimable"]


def test_an_approval_by_several_people_counts_their_answers(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    claim, wait = waits.blocked(driver, {"question": "Deploy?", "approvers": 2})
    waits.answer(driver, wait, "approve")

    row = only(driver, claim.id)

    assert row["sentence"].startswith(
        "waiting 0 s for the answers of 2 people (1 answered): Deploy?"
    )
    assert (row["detail"]["approvers"], row["detail"]["answers"]) == (2, 1)


def test_an_event_that_a_task_waits_for_is_named(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    claim, _ = waits.blocked(driver, {"event": "invoice.paid", "key": "4711"})

    row = only(driver, claim.id)

    assert row["reason"] == "event"
    assert row["sentence"] == "waiting 0 s for an event: invoice.paid 4711"
    assert (row["detail"]["event"], row["detail"]["event_key"]) == ("invoice.paid", "4711")


def test_a_question_that_expired_waits_for_the_promoter(driver: Driver) -> None:
    claim, _ = waits.blocked(driver, {"question": "Deploy?", "expires_s": 60})
    driver.rows("update treadle.waits set expires_at = '2026-01-02 03:04:05+00'")

    row = only(driver, claim.id)

    assert row["reason"] == "wait_expired"
    assert row["sentence"].startswith(
        "its question expired at 2026-01-02 03:04:05 UTC and no promoter has processed it: Deploy?"
    )


def test_why_names_the_holders_of_a_full_concurrency_key(driver: Driver) -> None:
    limit(driver, "repo:42", 1)
    first, second, third = (driver.enqueue(concurrency_key="repo:42") for _ in range(3))
    driver.claim_one("b")

    row = only(driver, second)

    assert row["reason"] == "key_full"
    holder = f"task {short(first)} on agent b"
    assert row["sentence"] == f"concurrency key repo:42 is full: 1 of 1, held by {holder}"
    assert row["detail"]["tasks"] == [{"id": str(first), "agent": "b", "status": "running"}]
    assert only(driver, third)["sentence"].endswith("; 1 are ahead of it")


def test_a_slot_that_is_free_waits_to_be_given_away(driver: Driver) -> None:
    limit(driver, "k", 1)
    _, second = (driver.enqueue(concurrency_key="k") for _ in range(2))
    driver.complete(driver.claim_one("a"))

    row = only(driver, second)

    assert row["reason"] == "admission"
    assert row["sentence"] == (
        "concurrency key k has room, 0 of 1: the next claim or the promoter assigns a slot"
    )
    assert driver.claim_one("a").id == second


def test_why_lists_all_reasons_that_apply(driver: Driver) -> None:
    graph = shaped(driver, {"plan": [], "ship": ["plan"]})
    driver.rows("update treadle.tasks set run_at = now() + interval '1 h' where name = 'ship'")
    driver.rows("select treadle.pause_queue('default')")
    for name in ("a", "b"):
        driver.agent(name, task_types=["review"])

    assert reasons(driver, graph["ship"]) == [
        "dependencies", "run_at", "queue_paused", "no_handler",
    ]  # fmt: skip
