"""Other ways to set a priority: an urgency of 1 to 10, five tiers, the name of a project."""

from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from treadle import Treadle
from treadle.errors import InvalidArgument, UnknownProject

pytestmark = pytest.mark.requirement("R9")

URGENCIES = {10: 5, 9: 15, 8: 25, 7: 35, 6: 45, 5: 55, 4: 65, 3: 75, 2: 85, 1: 95}
TIERS = {
    "critical": (5, range(10)),
    "high": (20, range(10, 30)),
    "normal": (45, range(30, 60)),
    "low": (70, range(60, 80)),
    "background": (90, range(80, 101)),
}


def test_an_urgency_maps_to_a_priority(driver: Driver) -> None:
    for urgency, priority in URGENCIES.items():
        assert driver.task(driver.enqueue(urgency=urgency))["priority"] == priority
        assert driver.value("select treadle.urgency_of_priority(%s)", priority) == urgency


def test_every_priority_has_an_urgency_in_the_same_order(
    driver: Driver,
) -> None:
    rows = driver.rows("select treadle.urgency_of_priority(n) from generate_series(0, 100) as n")
    urgencies = [row[0] for row in rows]

    assert urgencies == sorted(urgencies, reverse=True)
    assert set(urgencies) == set(URGENCIES)


def test_a_tier_maps_to_the_middle_of_its_priorities(driver: Driver) -> None:
    for number, (tier, (middle, priorities)) in enumerate(TIERS.items(), start=1):
        assert driver.task(driver.enqueue(tier=tier))["priority"] == middle
        assert driver.value("select treadle.priority_of_tier(%s)", str(number)) == middle
        for priority in priorities:
            assert driver.value("select treadle.tier_of_priority(%s)", priority) == tier


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"urgency": 0}, "urgency must be a whole number from 1 to 10"),
        ({"urgency": 11}, "urgency must be"),
        ({"urgency": "soon"}, "urgency must be"),
        ({"urgency": 5.5}, "urgency must be"),
        ({"tier": "urgent"}, "tier must be critical"),
        ({"tier": ""}, "tier must be"),
        ({"tier": "6"}, "tier must be"),
        ({"urgency": 5, "priority": 5}, "cannot be combined"),
        ({"urgency": 5, "tier": "low"}, "cannot be combined"),
        ({"tier": "low", "priority": 5}, "cannot be combined"),
    ],
)
def test_a_value_outside_every_scale_is_rejected(
    driver: Driver, options: dict[str, object], message: str
) -> None:
    with pytest.raises(psycopg.Error, match=message) as raised:
        driver.enqueue(**options)  # type: ignore[arg-type]

    assert raised.value.sqlstate == "TR001"
    assert driver.rows("select id from treadle.tasks") == []


@pytest.mark.parametrize("call", ["urgency_of_priority", "tier_of_priority"])
@pytest.mark.parametrize("priority", [-1, 101, None])
def test_an_invalid_priority_is_rejected(driver: Driver, call: str, priority: int | None) -> None:
    with pytest.raises(psycopg.Error, match="priority must be 0 to 100") as raised:
        driver.rows(f"select treadle.{call}(%s)", priority)

    assert raised.value.sqlstate == "TR001"


async def test_python_takes_them_as_options(driver: Driver, app: Treadle) -> None:
    made = driver.value("select id from treadle.define_project('site')")

    task = await app.enqueue("code", {}, urgency=8, project="site")

    row = driver.task(task.id)
    assert (row["priority"], row["project_id"]) == (25, made)
    with pytest.raises(UnknownProject, match="no project 'sight'"):
        await app.enqueue("code", {}, project="sight")
    with pytest.raises(InvalidArgument, match="cannot be combined"):
        await app.enqueue("code", {}, urgency=8, tier="low")


def test_a_project_is_made_once_and_changed_by_name(driver: Driver) -> None:
    made = driver.value(
        """select id from treadle.define_project('site', '{"external_ref": "S-1"}')"""
    )

    assert (
        driver.value("""select id from treadle.define_project('site', '{"share": 2.5}')""") == made
    )

    [row] = driver.records("select * from treadle.project_load")
    assert (row["id"], row["name"], row["external_ref"]) == (made, "site", "S-1")
    assert float(row["share"]) == 2.5


@pytest.mark.parametrize(
    "settings", [{"share": 0}, {"share": -1}, {"share": "NaN"}, {"share": None}, {"weight": 1}, []]
)
def test_a_project_that_cannot_be_is_refused(driver: Driver, settings: object) -> None:
    with pytest.raises(psycopg.Error) as raised:
        driver.rows("select treadle.define_project('site', %s)", Jsonb(settings))

    assert raised.value.sqlstate == "TR001"
    assert driver.rows("select name from treadle.projects") == []


@pytest.mark.parametrize("name", ["", None, "x" * 201])
def test_a_project_needs_a_name(driver: Driver, name: str | None) -> None:
    with pytest.raises(psycopg.Error) as raised:
        driver.rows("select treadle.define_project(%s)", name)

    assert raised.value.sqlstate == "TR001"


def test_the_load_of_a_project_counts_what_waits_and_runs(driver: Driver) -> None:
    driver.rows("select treadle.define_project('site')")
    for delay in (0, 0, 60):
        driver.enqueue(project="site", delay_s=delay)
    driver.enqueue(project_id=str(uuid4()))
    driver.claim("a", 1)
    driver.enqueue()

    [row] = driver.records("select name, ready, waiting, running from treadle.project_load")

    assert row == {"name": "site", "ready": 1, "waiting": 2, "running": 1}
