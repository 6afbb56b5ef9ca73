"""The rules of work items hold in SQL, for one session and for several at once."""

from itertools import product
from uuid import UUID

import psycopg
import pytest

from tests.drivers.dags import depend
from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.retention import age, exists, keep, prune
from tests.drivers.work import add, change, dispatched, in_progress, log, look, silent

STATES = ("queued", "dispatched", "in_progress", "blocked", "completed", "failed", "cancelled")
OUTCOMES = {"completed": "success", "failed": "failed", "cancelled": "cancelled"}


def brought(driver: Driver, status: str) -> UUID:
    """A new item in this state, of an agent of its own."""
    item = add(driver)
    way = [status] if status in ("queued", "cancelled") else ["dispatched", "in_progress", status]
    way = ["dispatched"] if status == "dispatched" else list(dict.fromkeys(way))
    for each in way if status != "queued" else []:
        change(driver, item, **full(each, f"agent of {item}"))
    return item


def full(status: str, agent: str) -> dict[str, str]:
    """A change that lacks nothing."""
    given = {"status": status, "notes": "because", "assigned_agent": agent}
    return {**given, **({"outcome": OUTCOMES[status]} if status in OUTCOMES else {})}


@pytest.mark.requirement("W5")
def test_a_change_that_is_not_listed_is_refused(driver: Driver) -> None:
    allowed = set(driver.rows("select from_status, to_status from treadle.work_transitions"))
    for start, goal in product(STATES, STATES):
        if start == goal:
            continue
        item = brought(driver, start)
        if (start, goal) in allowed:
            assert change(driver, item, **full(goal, f"agent of {item}"))["status"] == goal
            continue
        with unchanged(driver), refused("TR102", f"is {start} and cannot become {goal}"):
            change(driver, item, **full(goal, f"agent of {item}"))


@pytest.mark.requirement("W5")
@pytest.mark.parametrize(
    ("start", "goal", "without"),
    [
        ("queued", "dispatched", "assigned_agent"),
        ("in_progress", "completed", "outcome"),
        ("in_progress", "failed", "outcome"),
        ("in_progress", "blocked", "notes"),
    ],
)
def test_a_change_without_its_required_fields_is_rejected(
    driver: Driver, start: str, goal: str, without: str
) -> None:
    item = brought(driver, start)
    given = full(goal, f"agent of {item}")
    del given[without]
    with unchanged(driver), refused("TR001", f"needs {without}"):
        change(driver, item, **given)


@pytest.mark.requirement("W8")
def test_an_outcome_is_that_of_the_end_and_comes_with_none_other(driver: Driver) -> None:
    item = in_progress(driver)
    for wrong in (
        {"status": "completed", "outcome": "failed"},
        {"status": "blocked", "notes": "x", "outcome": "failed"},
        {"outcome": "success"},
    ):
        with unchanged(driver), refused("TR001", "outcome"):
            change(driver, item, **wrong)


@pytest.mark.requirement("W7")
def test_a_concurrent_start_of_the_same_item_waits_and_is_rejected(driver: Driver) -> None:
    item = dispatched(driver)

    def take(session: Driver) -> None:
        with refused("TR102", "already in progress"):
            change(session, item, status="in_progress")

    while_held(driver, lambda first: change(first, item, status="in_progress"), take)

    assert [to for _, to, _ in log(driver, item)].count("in_progress") == 1


@pytest.mark.requirement("W7")
def test_of_two_items_for_one_agent_at_once_the_second_is_refused(driver: Driver) -> None:
    first, second = dispatched(driver), dispatched(driver)

    def take(session: Driver) -> None:
        with refused("TR108"):
            change(session, second, status="in_progress")

    while_held(driver, lambda session: change(session, first, status="in_progress"), take)
    assert look(driver, second)["status"] == "dispatched"


def test_starting_an_item_again_is_rejected_but_updating_it_is_not(driver: Driver) -> None:
    item = in_progress(driver)
    with unchanged(driver), refused("TR102", "already in progress"):
        change(driver, item, status="in_progress")
    assert change(driver, item, status="in_progress", notes="half way")["notes"] == "half way"
    with unchanged(driver), refused("TR102", "already in progress"):
        change(driver, item, status="in_progress", notes="half way")


def test_an_item_in_progress_stays_with_its_agent(driver: Driver) -> None:
    item = in_progress(driver)
    with unchanged(driver), refused("TR102", "cannot be given to maria-k"):
        change(driver, item, assigned_agent="maria-k")


@pytest.mark.requirement("W11")
def test_each_change_restarts_the_stale_timeout_of_an_item(driver: Driver) -> None:
    item = in_progress(driver)
    silent(driver, item, 25)
    change(driver, item, notes="still here")
    silent(driver, item, 25)
    assert driver.reap() == []
    assert look(driver, item)["status"] == "in_progress"


def test_an_item_that_was_changed_meanwhile_is_left_alone(driver: Driver) -> None:
    item = in_progress(driver)
    read = look(driver, item)["updated_at"].isoformat()
    change(driver, item, notes="news")
    with unchanged(driver), refused("TR102", "changed since"):
        change(driver, item, status="blocked", notes="old", unless_updated_since=read)


@pytest.mark.requirement("W10")
def test_since_means_the_end_where_that_is_asked_for(driver: Driver) -> None:
    item, other = in_progress(driver), add(driver)
    since = look(driver, other)["created_at"]
    change(driver, item, status="completed", outcome="success")

    def found(status: str | None) -> list[UUID]:
        query = "select treadle.list_work_items(%s, p_since => %s)"
        return [row[0] for row in driver.rows(query, status, since)]

    assert found("completed") == [item]
    assert found(None) == []


@pytest.mark.requirement("W3")
def test_the_five_priorities_are_the_tiers_of_tasks(driver: Driver) -> None:
    items = [add(driver, priority=each) for each in (5, 4, 3, 2, 1)]
    assert [look(driver, item)["priority"] for item in items] == [5, 4, 3, 2, 1]
    assert [driver.task(item)["priority"] for item in items] == [90, 70, 45, 20, 5]
    listed = [row[0] for row in driver.rows("select treadle.list_work_items()")]
    assert listed == items[::-1]
    with refused("TR001"):
        add(driver, priority=6)


def test_work_that_waits_for_others_cannot_be_taken_and_frees_others_when_done(
    driver: Driver,
) -> None:
    item, after = add(driver), add(driver, "After the first")
    depend(driver, after, item)
    for each in (item, after):
        change(driver, each, status="dispatched", assigned_agent=f"agent of {each}")
    with refused("TR102", "waits for other tasks"):
        change(driver, after, status="in_progress")

    change(driver, item, status="in_progress")
    change(driver, item, status="completed", outcome="success")

    assert change(driver, after, status="in_progress")["status"] == "in_progress"


def test_a_type_that_wants_reports_and_breaks_circuits_does_not_ask_that_of_items(
    driver: Driver,
) -> None:
    driver.rows("""select treadle.define_type('code_review', '{"report": "required"}')""")
    item = in_progress(driver)
    assert change(driver, item, status="completed", outcome="success")["outcome"] == "success"


@pytest.mark.requirement("W2")
def test_queue_and_type_are_made_by_the_first_item(driver: Driver) -> None:
    made = together(driver, 4, lambda session, _: add(session))
    assert len(set(made)) == 4
    assert driver.value("select count(*) from treadle.queues where name = 'work'") == 1


@pytest.mark.requirement("W9")
def test_the_log_outlives_its_item(driver: Driver) -> None:
    item = in_progress(driver)
    change(driver, item, status="completed", outcome="success")
    keep(driver, "work", keep_completed_s=60)
    age(driver)

    assert prune(driver) == 1

    assert not exists(driver, item)
    assert [to for _, to, _ in log(driver, item)][-1] == "completed"


@pytest.mark.parametrize(
    ("agent", "hint"), [(" ", "Omit assigned_agent if there is none."), ("x" * 300, "")]
)
def test_to_leave_a_name_out_is_the_advice_where_it_is_empty(
    driver: Driver, agent: str, hint: str
) -> None:
    with pytest.raises(
        psycopg.Error, match="assigned_agent must have 1 to 200 characters"
    ) as raised:
        add(driver, agent=agent)

    assert raised.value.diag.message_hint == hint
