"""The files to delete: those of deleted tasks, and those that no claim can complete."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.drivers.artifacts import artifacts, reserve, store, stored
from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused
from tests.drivers.steps import claimed, record_artifact, refer, resolve

pytestmark = pytest.mark.requirement("F21")


def doomed(driver: Driver, grace_s: float = 0, *, dry_run: bool = False) -> list[UUID]:
    """The artifacts that a sweep has to delete."""
    driver.set_clock(timedelta(seconds=5))
    query = "select id from treadle.artifacts_to_delete(1000, %s, null, %s)"
    return [row[0] for row in driver.rows(query, grace_s, dry_run)]


def test_a_file_that_a_live_claim_is_writing_is_never_marked_for_deletion(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    driver.set_clock(timedelta(days=30))

    assert driver.rows("select id from treadle.artifacts_to_delete(1000, 0)") == []
    assert store(driver, claim, made)["id"] == str(made)


@pytest.mark.parametrize("how", ["reaped", "completed", "failed", "cancelled"])
def test_a_file_that_was_not_stored_when_its_claim_ended_is_doomed(
    driver: Driver, how: str
) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    kept = stored(driver, claim)
    if how == "reaped":
        driver.expire(claim)
    elif how == "completed":
        driver.complete(claim)
    elif how == "failed":
        driver.fail(claim, "boom")
    else:
        driver.rows("select treadle.cancel_tasks(array[%s])", claim.id)

    assert doomed(driver, grace_s=60) == []
    assert doomed(driver, dry_run=True) == [made]
    assert {row["status"] for row in artifacts(driver)} == {"storing", "stored"}
    assert doomed(driver) == [made]
    assert {row["id"]: row["status"] for row in artifacts(driver)} == {
        made: "doomed", kept: "stored"
    }  # fmt: skip


def test_a_doomed_file_stays_on_the_list_until_it_is_forgotten(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    kept = stored(driver, claim)
    driver.complete(claim)

    assert doomed(driver) == doomed(driver, grace_s=3600) == [made]
    query = "select treadle.remove_deleted_artifacts(%s)"
    assert driver.value(query, [made, kept, uuid4()]) == 1
    assert driver.value(query, [made, kept]) == 0
    assert [row["id"] for row in artifacts(driver)] == [kept]


def test_a_reservation_is_not_forgotten_before_it_is_doomed(driver: Driver) -> None:
    made = reserve(driver, claimed(driver))

    assert driver.value("select treadle.remove_deleted_artifacts(%s)", [made]) == 0


def test_the_files_of_deleted_tasks_are_doomed_and_links_go_with_them(driver: Driver) -> None:
    claim, other = claimed(driver), claimed(driver)
    made, kept = stored(driver, claim), stored(driver, other)
    unfinished = reserve(driver, claim)
    record_artifact(driver, claim)
    driver.complete(claim)
    user = driver.enqueue()
    refer(driver, user, {"file": f"artifact:{made}"})

    driver.rows("delete from treadle.tasks where id = %s", claim.id)

    assert resolve(driver, user)[1] is not None
    with refused("TR214"):
        driver.rows("select * from treadle.read_artifact(%s)", str(made))
    assert sorted(doomed(driver, grace_s=3600)) == sorted([made, unfinished])
    assert driver.rows("select id from treadle.artifact_details") == [(kept,)]
    assert {row["id"] for row in artifacts(driver)} == {made, kept, unfinished}


def test_a_file_stored_during_a_sweep_is_not_deleted(driver: Driver) -> None:
    """The sweep waits for the task's answer, and finds the file stored."""
    claim = claimed(driver)
    made = reserve(driver, claim)

    def finish(session: Driver) -> None:
        store(session, claim, made)
        session.complete(claim)

    while_held(
        driver,
        finish,
        lambda other: other.rows("select * from treadle.artifacts_to_delete(9, -60)"),
        waits=False,
    )

    assert [row["status"] for row in artifacts(driver)] == ["stored"]


def test_a_list_comes_in_pages(driver: Driver) -> None:
    claim = claimed(driver)
    made = sorted(reserve(driver, claim) for _ in range(5))
    driver.complete(claim)
    driver.set_clock(timedelta(seconds=5))

    pages, after = [], None
    query = "select id from treadle.artifacts_to_delete(2, 0, %s)"
    while page := [row[0] for row in driver.rows(query, after)]:
        pages.append(page)
        after = page[-1]

    assert pages == [made[:2], made[2:4], made[4:]]


def test_unknown_artifact_ids_are_returned(driver: Driver) -> None:
    claim = claimed(driver)
    known = [reserve(driver, claim), stored(driver, claim)]
    unknown = uuid4()

    query = "select treadle.unknown_artifacts(%s)"
    assert driver.rows(query, [*known, unknown]) == [(unknown,)]
    assert driver.rows("select treadle.unknown_artifacts('{}')") == []
