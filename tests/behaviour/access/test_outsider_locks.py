"""A login without a treadle role cannot block work: every lock that matters is a row lock."""

from collections.abc import Iterator

import pytest

from tests.drivers.engine import Driver
from tests.drivers.keys import admit, keyed
from tests.drivers.refusals import refused
from tests.drivers.replies import ASKED, begin

pytestmark = pytest.mark.requirement("B16")

# The names under which earlier versions took advisory locks.
OLD_NAMES = (
    "treadle.concurrency_keys k",
    f"treadle.replies '{ASKED[1]}' '{ASKED[0]}'",
    "treadle.migrate",
)


@pytest.fixture
def outsider(driver: Driver) -> Iterator[Driver]:
    """A session of a login that was granted nothing."""
    name = f"{driver.conn.info.dbname}_outsider"
    driver.rows(f"create role {name} login")
    session = driver.another()
    session.rows(f"set session authorization {name}")
    yield session
    session.rows("reset session authorization")
    driver.rows(f"drop role {name}")


def test_an_advisory_lock_of_an_outsider_stops_nothing(driver: Driver, outsider: Driver) -> None:
    for name in OLD_NAMES:
        outsider.rows("select pg_advisory_lock(hashtextextended(%s, 0))", name)
    keyed(driver)

    assert admit(driver) == 1
    assert begin(driver) == []
    outsider.rows("select pg_advisory_unlock_all()")


def test_an_outsider_can_lock_no_table(driver: Driver, outsider: Driver) -> None:
    tables = driver.rows("select tablename from pg_tables where schemaname = 'treadle'")
    assert tables

    for (name,) in tables:
        with refused("42501"):
            outsider.rows(f"begin; lock table treadle.{name} in access share mode")
        outsider.rows("rollback")


def test_no_function_takes_an_advisory_lock(driver: Driver) -> None:
    found = driver.rows(
        """
        select proname from pg_proc
        where pronamespace = 'treadle'::regnamespace and prosrc ~* 'advisory'
        """
    )

    assert found == []
