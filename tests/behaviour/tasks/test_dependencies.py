"""A task in no DAG can run after others and read their outputs, as the tasks of a DAG do."""

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dags import after, create, node
from tests.drivers.engine import Driver, Record
from tests.drivers.refusals import refused, unchanged
from tests.drivers.retention import DAY, age, complete_one, die, exists, keep, prune
from tests.drivers.steps import record_artifact
from tests.drivers.why import why
from treadle import Treadle, optional
from treadle.models import Claim, Enqueued

pytestmark = pytest.mark.requirement("F28")


def loosely(task: UUID) -> Record:
    return {"after": [{"task": str(task), "optional": True}]}


def output_of(task: UUID) -> Record:
    return {"inputs": {"given": f"task:{task}:output"}}


def claim_of(driver: Driver, task: UUID) -> Claim:
    [claim] = [each for each in driver.claim(limit=100) if each.id == task]
    return claim


def edges(driver: Driver) -> int:
    return int(driver.value("select count(*) from treadle.dependencies"))


@pytest.mark.parametrize("where", ["alone", "in a DAG"])
def test_it_runs_once_all_dependencies_are_completed(driver: Driver, where: str) -> None:
    first = driver.enqueue() if where == "alone" else create(driver, [node("a")])["a"]
    second = driver.enqueue()
    task = driver.enqueue(**after(first, second))
    claims = driver.claim(limit=10)
    assert [claim.id for claim in claims] == [first, second]
    [reason] = why(driver, task)
    assert reason["sentence"].startswith("waiting for 2 of 2 dependencies")

    for claim in claims:
        assert driver.state_of(task) == "pending"
        driver.complete(claim)

    assert driver.claim_one().id == task
    assert faults(driver) == []


@pytest.mark.parametrize("described", ["output", "output.pages.0", "artifact:report"])
def test_an_input_is_a_dependency_and_is_filled_in_at_the_claim(
    driver: Driver, described: str
) -> None:
    first = driver.enqueue()
    task = driver.enqueue({"own": 1}, inputs={"given": f"task:{first}:{described}"})
    claim = driver.claim_one()
    record_artifact(driver, claim, "report", "s3://bucket/report")
    assert driver.state_of(task) == "pending"

    driver.complete(claim, {"pages": ["cover"]})

    spec = driver.claim_one().spec
    given = spec.pop("given")
    assert spec == {"own": 1}
    if described.startswith("artifact"):
        assert given["uri"] == "s3://bucket/report"
    else:
        assert given == ({"pages": ["cover"]} if described == "output" else "cover")


def test_a_file_that_exists_is_an_input_without_a_dependency(driver: Driver) -> None:
    driver.enqueue()
    artifact = record_artifact(driver, driver.claim_one(), "report", "s3://bucket/report")

    driver.enqueue(inputs={"given": f"artifact:{artifact}"})

    assert driver.claim_one().spec["given"]["uri"] == "s3://bucket/report"
    assert edges(driver) == 0


def test_a_completed_dependency_is_met(driver: Driver) -> None:
    first = complete_one(driver, {"n": 7})

    driver.enqueue(**after(first), **output_of(first))

    assert driver.claim_one().spec == {"given": {"n": 7}}
    assert faults(driver) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_dead_letter_is_waited_for_and_its_retry_goes_on(driver: Driver, when: str) -> None:
    if when == "before":
        first = die(driver)
        task = driver.enqueue(**after(first))
    else:
        first = driver.enqueue()
        task = driver.enqueue(**after(first))
        driver.fail(driver.claim_one(), action="fail")

    assert driver.state_of(task) == "pending"
    [reason] = why(driver, task)
    assert reason["detail"]["tasks"][0]["status"] == "dead_lettered"
    assert "boom" in reason["sentence"]

    driver.retry(first)
    driver.complete(driver.claim_one())

    assert driver.claim_one().id == task
    assert faults(driver) == []


@pytest.mark.parametrize("how", ["one", "letters", "where"])
def test_a_dead_letter_that_is_cancelled_cancels_its_dependents(driver: Driver, how: str) -> None:
    first = die(driver)
    task = driver.enqueue(**after(first))
    calls = {
        "one": "select treadle.retry_task(%s, 'cancel')",
        "letters": "select treadle.resolve_dead_letters(array[%s], 'cancel')",
        "where": 'select treadle.cancel_tasks_where(\'{"type": "code"}\', p_limit => 5)',
    }

    driver.rows(calls[how], *([] if how == "where" else [first]))

    assert driver.state_of(task) == "cancelled"
    assert faults(driver) == []


def test_a_cancellation_cascades_with_its_reason(driver: Driver) -> None:
    first = driver.enqueue()
    task = driver.enqueue(**after(first))
    last = driver.enqueue(**output_of(task))
    free = driver.enqueue(**loosely(first))

    driver.cancel(first, reason="not needed")

    assert driver.state_of(task) == driver.state_of(last) == "cancelled"
    assert driver.task(last)["failure_reason"] == "not needed"
    assert driver.claim_one().id == free
    assert faults(driver) == []


def test_a_cancelled_dependency_is_refused_unless_it_is_optional(driver: Driver) -> None:
    first = driver.enqueue()
    driver.cancel(first)

    with unchanged(driver), refused("TR102", f"nothing can depend on task {first}"):
        driver.enqueue(**after(first))
    driver.enqueue(**loosely(first), **output_of(first))

    assert driver.claim_one().spec == {"given": None}


def test_a_retried_dependency_continues_its_cancelled_dependents_one_by_one(
    driver: Driver,
) -> None:
    first = driver.enqueue()
    task = driver.enqueue(**after(first))
    driver.cancel(first)

    with refused("TR102", "Retry that task first"):
        driver.retry(task)
    driver.retry(first)
    driver.retry(task)

    assert driver.state_of(task) == "pending"
    driver.complete(driver.claim_one())
    assert driver.claim_one().id == task
    assert faults(driver) == []


UNKNOWN = "01a1e32c-3259-700e-a7eb-f5fb4170a518"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"after": "x"}, "after must be a list"),
        ({"after": {"task": UNKNOWN}}, "after must be a list"),
        ({"after": [1]}, "1 is not a dependency"),
        ({"after": [{"task": UNKNOWN, "loose": True}]}, "is not a dependency"),
        ({"after": [{"task": UNKNOWN, "optional": "yes"}]}, "is not a dependency"),
        ({"after": [{"optional": True}]}, "is not a dependency"),
        ({"after": [UNKNOWN]}, f"there is no task '{UNKNOWN}'"),
        ({"after": ["build"]}, "there is no task 'build'"),
        ({"inputs": []}, "inputs must be an object"),
        ({"inputs": {"x": f"task:{UNKNOWN}:output"}}, f"there is no task '{UNKNOWN}'"),
        ({"inputs": {"x": f"task:{UNKNOWN}:spec"}}, "input x refers to"),
        ({"inputs": {"x": 5}}, "input x refers to"),
        ({"inputs": {"x": f"artifact:{UNKNOWN}"}}, "which does not exist"),
        ({"inputs": {"x": f"artifact:{'-' * 36}"}}, "input x refers to"),
    ],
    ids=str,
)
def test_what_cannot_be_waited_for_is_refused(driver: Driver, options: Record, words: str) -> None:
    driver.enqueue()

    with unchanged(driver), refused("TR001", words):
        driver.enqueue(**options)
    with unchanged(driver), refused("TR001"):
        driver.rows(
            "select treadle.enqueue_tasks(%s)",
            Jsonb([{"type": "code"}, {"type": "code", **options}]),
        )


def test_null_and_nothing_are_no_dependency(driver: Driver) -> None:
    given: list[Record] = [{"after": None, "inputs": None}, {"after": [], "inputs": {}}]
    for options in given:
        task = driver.enqueue({"n": 1}, **options)
        assert (claim := driver.claim_one()).id == task
        assert claim.spec == {"n": 1}


def test_the_other_options_hold_as_well(driver: Driver) -> None:
    first = driver.enqueue()
    held = driver.enqueue(**after(first), hold=True, priority=3, tags=["x"], title="t")
    later = driver.enqueue(**after(first), delay_s=3600)
    turns = [driver.enqueue(**after(first), concurrency_key="k") for _ in range(2)]
    child = driver.enqueue(**after(first), parent_id=str(first), created_by="ada", timeout_s=5)
    row = driver.task(held)
    assert (row["status"], row["priority"], row["tags"], row["title"]) == ("created", 3, ["x"], "t")
    row = driver.task(child)
    assert (row["parent_id"], row["created_by"], row["timeout_s"]) == (first, "ada", 5)

    driver.complete(driver.claim_one())

    assert driver.state_of(held) == "created"
    assert driver.state_of(later) == "pending"
    assert {claim.id for claim in driver.claim(limit=10)} == {child, turns[0]}
    driver.rows("select treadle.release_held_tasks(%s)", [held])
    assert driver.state_of(held) == "ready"
    driver.set_clock(DAY)
    driver.promote()
    assert driver.state_of(later) == "ready"


def test_many_tasks_depend_on_one_in_one_call(driver: Driver) -> None:
    first, second = driver.enqueue(), driver.enqueue()
    alike = driver.enqueue_batch([{"n": 1}, {"n": 2}], **after(first))
    query = "select id from treadle.enqueue_tasks(%s)"
    mixed = driver.rows(
        query,
        Jsonb(
            [
                {"type": "code", "queue": "default", **after(second, first)},
                {"type": "code", "spec": {"n": 3}},
                {"type": "test", **output_of(first)},
            ]
        ),
    )

    assert edges(driver) == 5
    states = [driver.state_of(each.id) for each in alike] + [
        driver.state_of(row[0]) for row in mixed
    ]
    assert states == ["pending", "pending", "pending", "ready", "pending"]
    assert faults(driver) == []


@pytest.mark.requirement("R1")
def test_a_repeat_returns_the_task_and_adds_no_dependency(driver: Driver) -> None:
    keep(driver)
    first, other = complete_one(driver), driver.enqueue()
    made = driver.enqueue_batch([{}, {}], keys=["k", "k"], **after(first))
    assert [each.created for each in made] == [True, False]
    [task] = {each.id for each in made}
    driver.complete(claim_of(driver, task))

    [again] = driver.enqueue_batch([{}], keys=["k"], **after(other))
    age(driver)
    driver.rows("update treadle.tasks set completed_at = treadle.clock() where id = %s", task)
    assert prune(driver) == 1
    # Its dependency is gone, and the call is still safe to repeat.
    [late] = driver.enqueue_batch([{}], keys=["k"], **after(first))

    assert again == late == Enqueued(task, created=False)
    assert edges(driver) == 0
    assert faults(driver) == []


def test_the_content_makes_the_key_with_dependencies_too(driver: Driver) -> None:
    first = driver.enqueue()

    ids = [driver.enqueue({"n": n}, dedupe=True, **after(first)) for n in (1, 1, 2)]

    assert ids[0] == ids[1] != ids[2]


def test_what_is_still_needed_is_not_pruned(driver: Driver) -> None:
    keep(driver)
    first, read = complete_one(driver, {"n": 1}), complete_one(driver, {"n": 2})
    task = driver.enqueue(**after(first), **output_of(read))
    age(driver)

    assert prune(driver) == 0
    assert driver.claim_one().spec == {"given": {"n": 2}}
    driver.cancel(task)
    assert exists(driver, first)
    assert exists(driver, read)


async def test_in_python_handles_and_outputs_are_dependencies(app: Treadle) -> None:
    @app.task()
    async def research(topic: str) -> dict[str, str]:
        return {"summary": f"about {topic}"}

    @app.task()
    async def report(facts: str, title: str, also: str | None = None) -> str:
        return f"{title}: {facts}"

    facts = await research.enqueue(topic="weaving")
    other = await research.enqueue(topic="looms")
    page = await report.using(after=[other]).enqueue(facts=facts.output["summary"], title="All")
    last = await app.enqueue(
        "report", {"title": "Last"}, after=[optional(other.id)], inputs={"facts": page}
    )
    await app.run_worker(until_empty=True)

    assert await last.result(timeout=20) == "Last: All: about weaving"
    depends_on = (await app.db.tasks.get(page.id))["depends_on"]
    assert set(depends_on) == {facts.id, other.id}
