"""A plain `insert into treadle.tasks` by a DBA creates a complete task."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("B8")


def test_a_plain_insert_gets_a_lane_and_a_rank_and_is_claimed(driver: Driver) -> None:
    driver.rows("insert into treadle.tasks (type, spec) values ('code', '{\"n\": 1}')")

    claim = driver.claim_one("a")

    assert claim.spec == {"n": 1}
    assert driver.complete(claim) == "completed"


def test_a_plain_insert_is_ordered_like_an_enqueued_task(driver: Driver) -> None:
    first = driver.enqueue(priority=50)
    [[second]] = driver.rows("insert into treadle.tasks (type) values ('code') returning id")
    [[urgent]] = driver.rows(
        "insert into treadle.tasks (type, priority) values ('code', 10) returning id"
    )

    assert [claim.id for claim in driver.claim("a", 10)] == [urgent, first, second]
    assert driver.value("select count(*) from treadle.lanes") == 1


def test_many_plain_inserts_of_many_kinds_are_placed_each_in_its_lane(driver: Driver) -> None:
    driver.rows(
        """
        insert into treadle.tasks (type, assigned_agent, priority)
        select
          case when mod(n, 2) = 0 then 'code' else 'test' end,
          case when mod(n, 3) = 0 then 'b' end,
          mod(n, 100)
        from generate_series(1, 300) as n
        """
    )

    assert driver.value("select count(*) from treadle.lanes") == 4
    assert len(driver.claim("a", 1000)) == 200


def test_a_plain_insert_with_a_time_to_run_waits_for_it(driver: Driver) -> None:
    [[task_id]] = driver.rows(
        """
        insert into treadle.tasks (type, run_at)
        values ('code', clock_timestamp() + interval '1 hour') returning id
        """
    )

    assert driver.state_of(task_id) == "pending"
    driver.fall_due(task_id)
    assert driver.state_of(task_id) == "ready"


@pytest.mark.parametrize(
    ("columns", "values", "sqlstate"),
    [
        ("type", "'nonsense'", "TR203"),
        ("type, queue", "'code', 'nonsense'", "TR202"),
        ("type, priority", "'code', 101", "TR001"),
        ("type, spec", "'code', '[]'", "TR001"),
        ("type, run_at", "'code', 'infinity'", "TR001"),
        ("type, timeout_s", "'code', 'NaN'", "TR001"),
        ("type, idempotency_key", "'code', ''", "TR001"),
        ("type, spec", "'code', jsonb_build_object('x', repeat('x', 1048577))", "TR002"),
    ],
)
def test_a_plain_insert_is_checked_like_an_enqueued_task(
    driver: Driver, columns: str, values: str, sqlstate: str
) -> None:
    with unchanged(driver), refused(sqlstate):
        driver.rows(f"insert into treadle.tasks ({columns}) values ({values})")
