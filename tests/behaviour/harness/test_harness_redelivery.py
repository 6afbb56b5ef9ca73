"""An action that is safe to repeat is executed again when its harness stops; any other is not."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.harness import age_actions, decided, finish, status, take, taken

pytestmark = pytest.mark.requirement("H6")


def stopped(driver: Driver, tries: int = 3) -> list[str]:
    """Let the leases of actions pass; what becomes of each."""
    age_actions(driver)
    query = "select status from treadle.interrupt_actions(p_max_tries => %s)"
    return [row[0] for row in driver.rows(query, tries)]


def test_it_is_taken_again_with_the_same_task_and_decision(driver: Driver) -> None:
    task_id = decided(driver, {"label": "bug"})
    first = taken(driver, redeliver=True)

    assert stopped(driver) == ["waiting"]
    again = taken(driver, redeliver=True)

    assert (again["id"], again["decision"], again["tries"]) == (task_id, {"label": "bug"}, 2)
    assert finish(driver, first) == "lost"
    assert finish(driver, again) == "done"
    assert status(driver, task_id) == ("done", "done")


def test_it_is_left_to_an_operator_after_its_last_try(driver: Driver) -> None:
    task_id = decided(driver)
    for _ in range(2):
        taken(driver, redeliver=True)
        assert stopped(driver) == ["waiting"]
    taken(driver, redeliver=True)

    assert stopped(driver) == ["interrupted"]

    assert status(driver, task_id) == ("completed", "interrupted")
    assert take(driver) == []


def test_by_default_it_is_interrupted(driver: Driver) -> None:
    task_id = decided(driver)
    taken(driver, redeliver=True)
    assert stopped(driver) == ["waiting"]
    # Whether it is safe to repeat is a matter of the callback that runs it now.
    taken(driver)

    assert stopped(driver) == ["interrupted"]

    assert status(driver, task_id) == ("completed", "interrupted")


@pytest.mark.parametrize(("redeliver", "becomes"), [(True, "waiting"), (False, "interrupted")])
def test_one_whose_harness_does_not_wait_for_it_is_treated_alike(
    driver: Driver, redeliver: bool, becomes: str
) -> None:
    decided(driver)
    action = taken(driver, redeliver=redeliver)

    assert finish(driver, action, "interrupted", "stopped") == becomes

    assert len(take(driver)) == (1 if redeliver else 0)


def test_a_late_result_counts_until_it_is_taken_again_or_an_operator_decides(
    driver: Driver,
) -> None:
    late, decided_upon = decided(driver), decided(driver)
    first, second = take(driver, redeliver=True)
    assert stopped(driver) == ["waiting"] * 2
    driver.rows("select treadle.rerun_action(%s)", decided_upon)

    assert [finish(driver, first), finish(driver, second)] == ["done", "waiting"]

    assert (first["id"], second["id"]) == (late, decided_upon)
    assert [each["id"] for each in take(driver)] == [decided_upon]
