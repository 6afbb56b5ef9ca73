"""Invalid steps are rejected: another input under the same name, too large, malformed."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import MIB, claimed, save_step, step_names, steps

pytestmark = pytest.mark.requirement("B1")


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_another_input_under_the_same_name_is_refused_and_both_are_named(driver: Driver) -> None:
    claim = claimed(driver)
    save_step(driver, claim, "draft", "old", input_hash="h1", input="cats and more")

    words = """'draft' .*"cats...".*"dogs..."[^$]*"given_hash": "h2".*"stored_hash": "h1\""""
    with unchanged(driver), refused("TR104", words):
        save_step(
            driver,
            claim,
            "draft",
            "new",
            input_hash="h2",
            input="dogs and more",
            calls=[{"usd": 1}],
        )


def test_a_conflict_without_readable_inputs_names_their_hashes(driver: Driver) -> None:
    claim = claimed(driver)
    save_step(driver, claim, input_hash="h1")

    with refused("TR104", "input h1, .* input h2"):
        save_step(driver, claim, input_hash="h2")


def test_a_conflict_is_found_by_the_next_attempt_too(driver: Driver) -> None:
    claim = claimed(driver)
    save_step(driver, claim, input_hash="h1")
    driver.fail(claim)
    again = driver.claim_one("b")

    with unchanged(driver), refused("TR104"):
        save_step(driver, again, input_hash="h2")


def test_a_conflict_between_two_sessions_is_found(driver: Driver) -> None:
    claim = claimed(driver)

    with refused("TR104"):
        while_held(
            driver,
            lambda first: save_step(first, claim, input_hash="h1"),
            lambda second: save_step(second, claim, input_hash="h2"),
        )


@pytest.mark.parametrize(("stored", "given"), [("h", "h"), (None, "h"), ("h", None), (None, None)])
def test_an_equal_or_unknown_input_is_not_a_conflict(
    driver: Driver, stored: str | None, given: str | None
) -> None:
    claim = claimed(driver)
    save_step(driver, claim, output=1, input_hash=stored)

    assert save_step(driver, claim, output=2, input_hash=given) == (1, False)


def test_a_step_does_not_take_the_name_of_an_answer(driver: Driver) -> None:
    claim = claimed(driver)
    driver.rows(
        "select treadle.store_step(%s, 'ask', 'wait', '{\"value\": 1}', 1::smallint, null, null)",
        claim.id,
    )

    with unchanged(driver), refused("TR104", "'ask' was saved as a wait"):
        save_step(driver, claim, "ask", 2)


def test_an_output_over_16_mib_is_refused_with_both_sizes(driver: Driver) -> None:
    claim = claimed(driver)
    text = "x" * (16 * MIB)

    with unchanged(driver), refused("TR002", f"has {16 * MIB + 12} bytes, {16 * MIB} are"):
        save_step(driver, claim, output=text, calls=[{"usd": 1}])


def test_the_steps_of_a_task_together_have_a_limit(driver: Driver) -> None:
    claim = claimed(driver)
    # Short when stored, since it is compressed, and long when handed over.
    for n in range(6):
        save_step(driver, claim, f"part {n}", "x" * (5 * MIB))

    with unchanged(driver), refused("TR002", f"bytes, {32 * MIB} are allowed"):
        save_step(driver, claim, "one too many", "x" * (5 * MIB))

    assert save_step(driver, claim, "small", "x") == ("x", True)
    driver.fail(claim)
    assert len(driver.claim_one("b").steps or []) == 7


def test_a_task_has_ten_thousand_steps_at_most(driver: Driver) -> None:
    claim = claimed(driver)
    driver.rows(
        """
        insert into treadle.steps (task_id, name, seq, attempt)
        select %s, n::text, n, 1 from generate_series(1, 10000) as n
        """,
        claim.id,
    )

    with unchanged(driver), refused("TR002", "has 10000 steps"):
        save_step(driver, claim)
    assert save_step(driver, claim, "7", "again") == (None, False)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (nested(70), "nested more than 64 levels deep"),
        ([10**400], "numbers that are too long"),
    ],
)
def test_an_output_that_could_not_be_passed_on_is_rejected(
    driver: Driver, output: object, words: str
) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", words):
        save_step(driver, claim, output=output)


BAD: dict[str, dict[str, Any]] = {
    "no name": {"name": None},
    "an empty name": {"name": ""},
    "a long name": {"name": "x" * 201},
    "a long name of few letters": {"name": "ü" * 101},
    "a very long name": {"name": "x" * 300},
    "no kind": {"kind": None},
    "an unknown kind": {"kind": "thought"},
    "the kind of an answer": {"kind": "wait"},
    "the kind of subtasks": {"kind": "spawn"},
    "a long hash": {"input_hash": "x" * 201},
    "an endless start": {"started_at": "infinity"},
    "calls that are no list": {"calls": {"usd": 1}},
}


@pytest.mark.parametrize("options", BAD.values(), ids=BAD.keys())
def test_a_malformed_step_is_refused(driver: Driver, options: dict[str, Any]) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001"):
        save_step(driver, claim, **options)


def test_a_step_of_nothing_is_a_lost_claim(driver: Driver) -> None:
    with refused("TR101"):
        driver.rows("select treadle.save_step(null, null, 'x', '1')")


def test_names_may_have_any_letters_up_to_200_bytes(driver: Driver) -> None:
    claim = claimed(driver)
    names = ["x" * 200, "ü" * 100, "a'b\"c", " ", "日本", "draft 2/3"]

    for name in names:
        save_step(driver, claim, name)

    assert step_names(driver, claim.id) == names


def test_a_long_input_is_kept_in_part_for_people(driver: Driver) -> None:
    claim = claimed(driver)

    save_step(driver, claim, input="x" * 5000, input_hash="h")

    assert [step["input"] for step in steps(driver, claim.id)] == ["x" * 500]


def test_a_stored_step_is_not_overwritten(driver: Driver) -> None:
    task_id = driver.enqueue()
    query = "select treadle.store_step(%s, 'ask', 'wait', %s, 0::smallint, null, null)"

    assert driver.value(query, task_id, Jsonb(1)) is True
    assert driver.value(query, task_id, Jsonb(2)) is False

    [step] = steps(driver, task_id)
    assert (step["output"], step["kind"], step["seq"]) == (1, "wait", 1)
    assert driver.task(task_id)["durable"] is True
