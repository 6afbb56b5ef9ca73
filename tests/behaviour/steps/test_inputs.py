"""Arguments of a task can be outputs or files of other tasks: they are resolved at the claim."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.steps import MIB, claimed, completed, depend, record_artifact, refer, resolve

pytestmark = pytest.mark.requirement("F22")

OUTPUT = {"text": "hello", "list": [{"n": 1}, {"n": 2}], "none": None, "0": "zero", "a b": 3}


def problem_of(driver: Driver, reference: object, task_id: UUID | None = None) -> str:
    """Why a task cannot have this as its argument."""
    task_id = task_id or driver.enqueue({"x": 1})
    refer(driver, task_id, {"brief": reference})
    spec, problem = resolve(driver, task_id)
    assert spec == {"x": 1}
    assert problem is not None
    assert problem.startswith("input 'brief' cannot be filled in from ")
    return problem


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", OUTPUT),
        (".text", "hello"),
        (".list", [{"n": 1}, {"n": 2}]),
        (".list.0", {"n": 1}),
        (".list.1.n", 2),
        (".list.-1.n", 2),
        (".none", None),
        (".0", "zero"),
        (".a b", 3),
    ],
)
def test_an_output_or_a_part_of_it_is_filled_in(driver: Driver, path: str, value: object) -> None:
    source = completed(driver, OUTPUT)
    task_id = driver.enqueue({"x": 1, "brief": "to be replaced"})
    refer(driver, task_id, {"brief": f"task:{source}:output{path}"})

    assert resolve(driver, task_id) == ({"x": 1, "brief": value}, None)


def test_the_claim_has_the_values_and_the_task_keeps_the_references(driver: Driver) -> None:
    source = completed(driver, {"n": 7})
    task_id = driver.enqueue({"x": 1})
    inputs = {"n": f"task:{source}:output.n", "all": f"task:{source}:output"}
    refer(driver, task_id, inputs)

    claim = driver.claim_one("b")

    assert (claim.spec, claim.problem) == ({"x": 1, "n": 7, "all": {"n": 7}}, None)
    task = driver.task(task_id)
    assert (task["spec"], task["inputs"]) == ({"x": 1}, inputs)


def test_a_claim_whose_inputs_cannot_be_resolved_has_a_problem_and_does_not_affect_others(
    driver: Driver,
) -> None:
    bad, good = driver.enqueue(), driver.enqueue()
    refer(driver, bad, {"brief": f"task:{uuid4()}:output"})

    claims = {claim.id: claim.problem for claim in driver.claim("a", 2)}

    assert "there is no such task" in (claims[bad] or "")
    assert claims[good] is None


def test_a_task_without_inputs_has_its_spec(driver: Driver) -> None:
    assert resolve(driver, driver.enqueue({"x": 1})) == ({"x": 1}, None)


def test_an_output_of_nothing_is_null(driver: Driver) -> None:
    source = claimed(driver)
    driver.rows("select treadle.complete_task(%s, %s)", source.id, source.token)
    task_id = driver.enqueue()
    refer(driver, task_id, {"brief": f"task:{source.id}:output"})

    assert resolve(driver, task_id) == ({"brief": None}, None)


def test_a_file_is_filled_in_with_where_it_is(driver: Driver) -> None:
    digest = "0f" * 32
    given = ("a.pdf", "s3://b/a.pdf", "application/pdf", 12, digest)
    artifact = record_artifact(driver, claimed(driver), *given)
    task_id = driver.enqueue()
    refer(driver, task_id, {"brief": f"artifact:{artifact}"})

    [value] = resolve(driver, task_id)[0].values()

    assert value == {
        "id": str(artifact), "name": "a.pdf", "uri": "s3://b/a.pdf",
        "media_type": "application/pdf", "bytes": 12, "sha256": digest,
    }  # fmt: skip


def test_a_task_that_does_not_exist_is_a_problem(driver: Driver) -> None:
    reference = f"task:{uuid4()}:output"

    assert problem_of(driver, reference).endswith(f"from '{reference}': there is no such task")


def test_a_file_that_does_not_exist_is_a_problem(driver: Driver) -> None:
    assert problem_of(driver, f"artifact:{uuid4()}").endswith(": there is no such artifact")


@pytest.mark.parametrize("state", ["ready", "running", "cancelled", "dead_lettered"])
def test_a_task_that_has_not_completed_is_a_problem(driver: Driver, state: str) -> None:
    source = driver.enqueue(max_attempts=1)
    if state == "cancelled":
        driver.cancel(source)
    elif state != "ready":
        claim = driver.claim_one("a")
        if state == "dead_lettered":
            driver.fail(claim)

    problem = problem_of(driver, f"task:{source}:output")

    assert problem.endswith(f": the task is {state}, not completed")


@pytest.mark.parametrize("path", ["nope", "text.more", "list.2", "list.n", "list.0.n.x", "none.x"])
def test_a_part_that_the_output_does_not_have_is_a_problem(driver: Driver, path: str) -> None:
    source = completed(driver, OUTPUT)

    problem = problem_of(driver, f"task:{source}:output.{path}")

    assert problem.endswith(f": the output has no {path}")


ID = "00000000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "brief",
        f"task:{ID}",
        f"task:{ID}:input",
        f"task:{ID}:output.",
        f"task:{ID}:output..a",
        f"task:{ID}:output.a.",
        f"task:{ID}:outputs",
        f" task:{ID}:output",
        "task:draft:output",
        "task:------------------------------------:output",
        "artifact:",
        "artifact:report.pdf",
        f"artifact:{ID}:output",
        7,
        None,
        {"task": ID},
        ["task"],
    ],
)
def test_a_malformed_reference_is_a_problem(driver: Driver, reference: object) -> None:
    assert "it is not task:<id>:output" in problem_of(driver, reference)


def test_inputs_that_are_not_an_object_are_a_problem(driver: Driver) -> None:
    task_id = driver.enqueue()
    refer(driver, task_id, ["task"])

    assert resolve(driver, task_id) == ({}, "the inputs of the task are not a JSON object")


@pytest.mark.parametrize("end", ["cancelled", "dead_lettered"])
@pytest.mark.parametrize("path", ["", ".a.b"])
def test_what_an_optional_task_did_not_deliver_is_null(driver: Driver, end: str, path: str) -> None:
    source = driver.enqueue(max_attempts=1)
    if end == "cancelled":
        driver.cancel(source)
    else:
        driver.fail(driver.claim_one("a"))
    task_id = driver.enqueue({"x": 1})
    depend(driver, task_id, source, optional=True, met=end == "cancelled")
    refer(driver, task_id, {"brief": f"task:{source}:output{path}"})

    assert resolve(driver, task_id) == ({"x": 1, "brief": None}, None)


def test_an_optional_task_that_is_revived_too_late_is_null_too(driver: Driver) -> None:
    source = driver.enqueue()
    task_id = driver.enqueue()
    depend(driver, task_id, source, optional=True, met=True)
    refer(driver, task_id, {"brief": f"task:{source}:output"})

    assert resolve(driver, task_id) == ({"brief": None}, None)


@pytest.mark.parametrize(("optional", "met"), [(False, True), (True, False)])
def test_a_task_that_is_needed_or_still_awaited_is_a_problem(
    driver: Driver, optional: bool, met: bool
) -> None:
    source, task_id = driver.enqueue(), driver.enqueue({"x": 1})
    depend(driver, task_id, source, optional=optional, met=met)

    problem = problem_of(driver, f"task:{source}:output", task_id)

    assert problem.endswith("the task is ready, not completed")


def test_the_optional_edge_of_another_task_does_not_count(driver: Driver) -> None:
    source, other = driver.enqueue(), driver.enqueue()
    driver.cancel(source)
    depend(driver, other, source, optional=True, met=True)

    assert "cancelled" in problem_of(driver, f"task:{source}:output")


def test_outputs_that_are_too_much_for_a_claim_are_a_problem(driver: Driver) -> None:
    sources = [completed(driver, "x" * (12 * MIB)) for _ in range(3)]
    task_id = driver.enqueue({"x": 1})
    refer(driver, task_id, {f"p{n}": f"task:{each}:output" for n, each in enumerate(sources)})

    spec, problem = resolve(driver, task_id)

    assert spec == {"x": 1}
    assert "input 'p2'" in str(problem)


@pytest.mark.parametrize(
    ("output", "words"),
    [("repeat('[', 70) || repeat(']', 70)", "64 levels"), ("'[1e100000]'", "too long")],
)
def test_an_output_that_could_not_be_sent_is_a_problem(
    driver: Driver, output: str, words: str
) -> None:
    source: Any = claimed(driver)
    driver.rows(f"select treadle.complete_task(%s, %s, ({output})::jsonb)", source.id, source.token)

    assert words in problem_of(driver, f"task:{source.id}:output")
