"""Work items reach their agents only by a dispatch, which is recorded."""

import json

import psycopg
import pytest

from tests.drivers.dags import add as add_node
from tests.drivers.dags import node, opened, start
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.work import add, change, dispatched, in_progress, log, look, silent

UNHOLD = "select * from treadle.release_held_tasks(%s)"


@pytest.mark.requirement("W5", "W9")
def test_a_work_item_is_not_released_like_other_tasks(driver: Driver) -> None:
    item, other = add(driver, agent="steve-w"), driver.enqueue(hold=True)

    for ids in ([item], [other, item]):
        with unchanged(driver), refused("TR102", f"{item} cannot be released"):
            driver.rows(UNHOLD, ids)

    change(driver, item, status="dispatched")
    assert log(driver, item)[-1] == ("queued", "dispatched", "steve-w")


@pytest.mark.requirement("W5", "W9")
def test_a_task_that_is_enqueued_as_work_waits_for_its_dispatcher(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('work')")
    item = driver.enqueue(queue="work")

    assert look(driver, item)["status"] == "queued"

    change(driver, item, status="dispatched", assigned_agent="steve-w")
    assert log(driver, item) == [("queued", "dispatched", "steve-w")]


@pytest.mark.requirement("W5", "W9")
def test_a_work_item_of_a_dag_that_is_started_is_still_to_be_dispatched(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('work')")
    graph = opened(driver)
    first = add_node(graph, node("a", queue="work"))
    add_node(graph, node("b", ["a"]))
    with refused("TR102", "cannot leave the status queued"):
        change(driver, first, status="dispatched", assigned_agent="steve-w")

    assert start(graph) == 2

    assert graph.states() == {"a": "created", "b": "pending"}
    for way in (
        {"status": "dispatched", "assigned_agent": "steve-w"},
        {"status": "in_progress"},
        {"status": "completed", "outcome": "success"},
    ):
        change(driver, first, **way)
    assert graph.states() == {"a": "completed", "b": "ready"}
    assert driver.rows("select agent, outcome from treadle.work_dispatches") == [
        ("steve-w", "success")
    ]


@pytest.mark.requirement("W11")
@pytest.mark.parametrize("letter", ["x", "é", "𝄞"])
def test_the_note_of_the_reaper_finds_room_below_long_ones(driver: Driver, letter: str) -> None:
    item = in_progress(driver)
    change(driver, item, notes=letter * 20_000)
    silent(driver, item, 31)

    driver.reap()

    first, last = look(driver, item)["notes"].splitlines()
    assert first.startswith(f"…{letter * 19_000}")
    assert "timed out" in last
    assert len(f"{first}\n{last}") == 20_000
    assert change(driver, item, status="in_progress", notes=f"{first}\n{last}")


@pytest.mark.requirement("W5", "W7")
def test_the_error_for_a_busy_agent_lists_the_allowed_states(driver: Driver) -> None:
    mine = in_progress(driver)
    waiting, stuck = dispatched(driver), in_progress(driver, "maria-k")
    change(driver, stuck, status="blocked", notes="waits")

    for item, allowed in ((waiting, ["cancelled"]), (stuck, [])):
        with pytest.raises(psycopg.Error) as raised:
            change(driver, item, status="in_progress", assigned_agent="steve-w")
        detail = json.loads(raised.value.diag.message_detail or "")
        assert (detail["in_progress"], detail["allowed"]) == (str(mine), allowed)
