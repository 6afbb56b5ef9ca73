"""A file is reserved, written and marked as stored; only then is it visible."""

from datetime import timedelta
from typing import Any

import pytest

from tests.drivers.artifacts import DIGEST, artifacts, listed, read, reserve, store, stored
from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import claimed, record_artifact, refer, resolve

pytestmark = pytest.mark.requirement("F21")


def test_a_reserved_file_is_not_visible(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    other = driver.enqueue()
    refer(driver, other, {"file": f"artifact:{made}"})

    assert resolve(driver, other)[1] is not None
    assert listed(driver, claim.id) == []
    for reference in (made, f"artifact:{made}", "a.pdf"):
        with refused("TR214", "there is no artifact"):
            read(driver, reference, claim.id)
    [row] = artifacts(driver)
    assert (row["status"], row["attempt"], row["agent_id"]) == ("storing", 1, "a")


def test_a_stored_file_is_seen_by_all(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)

    value = store(driver, claim, made)

    [row] = artifacts(driver)
    folder = driver.value("select treadle.artifact_folder()")
    assert row["key"] == f"{folder}/{claim.id}/{made}"
    assert value == {
        "id": str(made), "name": "a.pdf", "uri": f"s3://bucket/files/{row['key']}",
        "media_type": "application/pdf", "bytes": 12, "sha256": DIGEST,
    }  # fmt: skip
    assert read(driver, "a.pdf", claim.id) == read(driver, f"artifact:{made}") == value
    assert listed(driver, claim.id) == [(made, 1)]
    other = driver.enqueue(spec={})
    refer(driver, other, {"file": f"artifact:{made}"})
    assert resolve(driver, other) == ({"file": value}, None)


def test_a_repeat_after_a_lost_answer_changes_nothing(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    reserve(driver, claim, made)
    first = store(driver, claim, made)
    before = artifacts(driver)

    assert store(driver, claim, made) == first
    reserve(driver, claim, made)
    assert artifacts(driver) == before
    with unchanged(driver), refused("TR001", "with different content"):
        store(driver, claim, made, sha256="1f" * 32)
    with unchanged(driver), refused("TR001", "is already used for another file"):
        reserve(driver, claim, made, name="b.pdf")


def test_an_id_of_another_task_is_refused(driver: Driver) -> None:
    first, second = claimed(driver), claimed(driver)
    made = reserve(driver, first)

    with unchanged(driver), refused("TR001", "is already used for another file"):
        reserve(driver, second, made)
    with unchanged(driver), refused("TR214"):
        store(driver, second, made)
    assert driver.value(
        "select treadle.cancel_artifact(%s, %s, %s)", second.id, second.token, made
    ) is False  # fmt: skip


def test_a_superseded_claim_can_neither_reserve_nor_store(driver: Driver) -> None:
    first = claimed(driver)
    made = reserve(driver, first)
    driver.expire(first)
    second = driver.claim_one("b")

    with unchanged(driver), refused("TR101"):
        store(driver, first, made)
    with unchanged(driver), refused("TR101"):
        reserve(driver, first)
    with unchanged(driver), refused("TR214"):
        store(driver, second, made)


def test_storing_renews_the_lease(driver: Driver) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)
    driver.age_claim(claim.id, timedelta(hours=1))

    store(driver, claim, made)

    assert driver.reap() == []


def test_of_one_name_the_newest_counts_and_the_others_stay(driver: Driver) -> None:
    claim = claimed(driver)
    first, second = reserve(driver, claim), reserve(driver, claim)
    store(driver, claim, second)
    store(driver, claim, first)

    assert read(driver, "a.pdf", claim.id)["id"] == str(first)
    assert read(driver, second)["id"] == str(second)
    assert listed(driver, claim.id) == [(second, 1), (first, 1)]


def test_the_files_of_a_failed_attempt_are_kept_with_its_number(driver: Driver) -> None:
    first = claimed(driver)
    made, linked = stored(driver, first), record_artifact(driver, first)
    driver.expire(first)
    second = driver.claim_one("b")

    again = stored(driver, second)

    assert listed(driver, first.id) == [(made, 1), (linked, 1), (again, 2)]
    assert read(driver, "a.pdf", first.id)["id"] == str(again)


def test_what_was_not_stored_can_be_given_up_and_what_was_cannot(driver: Driver) -> None:
    claim = claimed(driver)
    kept, given_up = stored(driver, claim), reserve(driver, claim)
    query = "select treadle.cancel_artifact(%s, %s, %s)"

    assert driver.value(query, claim.id, claim.token, given_up) is True
    assert driver.value(query, claim.id, claim.token, given_up) is False
    assert driver.value(query, claim.id, claim.token, kept) is False
    assert [row["id"] for row in artifacts(driver)] == [kept]


def test_the_first_files_of_a_database_share_one_folder(driver: Driver) -> None:
    claims = [claimed(driver), claimed(driver)]
    assert driver.value("select treadle.artifact_folder()") is None

    while_held(driver, lambda one: reserve(one, claims[0]), lambda other: reserve(other, claims[1]))

    folder = driver.value("select treadle.artifact_folder()")
    assert [row["key"].split("/")[0] for row in artifacts(driver)] == [folder, folder]


BAD: dict[str, dict[str, Any]] = {
    "no name": {"name": None},
    "an empty name": {"name": ""},
    "a long name": {"name": "x" * 1001},
    "no url": {"url": None},
    "an empty url": {"url": ""},
    "a long url": {"url": "x" * 3001},
    "an empty media type": {"media_type": ""},
    "a long media type": {"media_type": "x" * 201},
}


@pytest.mark.parametrize("options", BAD.values(), ids=BAD.keys())
def test_a_reservation_that_makes_no_sense_is_refused(
    driver: Driver, options: dict[str, Any]
) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", "artifact: "):
        reserve(driver, claim, **options)


@pytest.mark.parametrize(
    ("size", "sha256"),
    [(-1, DIGEST), (None, DIGEST), (1, None), (1, "0f"), (1, "0F" * 32), (1, "z" * 64)],
)
def test_a_file_without_a_size_or_a_hash_is_refused(
    driver: Driver, size: int | None, sha256: str | None
) -> None:
    claim = claimed(driver)
    made = reserve(driver, claim)

    with unchanged(driver), refused("TR001", "artifact: bytes"):
        store(driver, claim, made, size, sha256)
