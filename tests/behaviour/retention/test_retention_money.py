"""The cost of pruned tasks still counts, and no reader misses an event."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.budgets import money, set_budget
from tests.drivers.engine import Driver
from tests.drivers.retention import (
    age,
    complete_one,
    exists,
    keep,
    keep_events,
    prune,
    sweep_events,
)
from tests.drivers.steps import claimed, record_spend
from tests.drivers.waits import expect

DAILY = "select * from treadle.daily_spend order by day, agent, model, type"
BUDGETS = """
    select key, period, limit_usd, spent_usd, reserved_usd, left_usd
    from treadle.budget_status order by id
"""


def paid(driver: Driver, usd: str, model: str, agent: str = "a") -> None:
    claim = claimed(driver, agent)
    record_spend(driver, claim, [{"usd": usd, "model": model, "input_tokens": 10, "call_id": "1"}])
    driver.complete(claim)


@pytest.mark.requirement("B9")
def test_daily_figures_and_budgets_do_not_change_when_tasks_go(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    budgets = [set_budget(driver, "agent", "a", 100), set_budget(driver, "type", "code", 9, "day")]
    for usd, model in [("0.10", "small"), ("0.20", "large"), ("0.30", "small")]:
        paid(driver, usd, model)
        paid(driver, usd, model, "b")
    daily, status = driver.records(DAILY), driver.records(BUDGETS)
    before = [money(driver, each) for each in budgets]

    assert prune(driver) == 6

    assert driver.records(DAILY) == daily
    assert driver.records(BUDGETS) == status
    assert [money(driver, each) for each in budgets] == before
    assert driver.rows("select * from treadle.spend") == []
    assert driver.value("select count(*) from treadle.spend_hours") == 4


@pytest.mark.parametrize("period", [None, "hour", "day", "week", "month"])
def test_a_later_budget_includes_the_cost_of_pruned_tasks(
    driver: Driver, period: str | None
) -> None:
    keep(driver, keep_completed_s=0)
    paid(driver, "0.40", "m")
    prune(driver)
    paid(driver, "0.05", "m")
    prune(driver)
    paid(driver, "0.02", "m")

    made = set_budget(driver, "agent", "a", 5, period)

    # At the turn of an hour what came before is not of this period.
    hour = driver.value("select count(distinct hour) from treadle.spend_hours")
    if period is None or hour == 1:
        assert money(driver, made)[0] == Decimal("0.47")


def read_to(driver: Driver, name: str, event: dict[str, Any]) -> None:
    driver.rows(
        """
        insert into treadle.event_readers (name, xid, id) values (%s, %s::text::xid8, %s)
        on conflict (name) do update set xid = excluded.xid, id = excluded.id
        """,
        name,
        str(event["xid"]),
        event["id"],
    )


def events(driver: Driver) -> list[dict[str, Any]]:
    return driver.records(
        "select id, xid::text, kind, task_id from treadle.events order by events.xid, id"
    )


def talkative(driver: Driver) -> None:
    driver.rows("""select treadle.define_queue('default', '{"audit": "full"}')""")


@pytest.mark.requirement("B9")
def test_a_task_goes_with_its_events_once_every_reader_has_them(driver: Driver) -> None:
    talkative(driver)
    keep(driver, keep_completed_s=0)
    task = complete_one(driver)
    first, *rest = (each for each in events(driver) if each["task_id"] == task)
    read_to(driver, "fast", rest[-1])
    read_to(driver, "slow", first)

    assert prune(driver) == 0
    read_to(driver, "slow", rest[-1])
    assert prune(driver) == 1

    assert not exists(driver, task)
    assert [each for each in events(driver) if each["task_id"] == task] == []
    [(kinds,)] = driver.rows(
        "select jsonb_path_query_array(events, '$[*].kind') from treadle.archived_tasks"
    )
    assert kinds == [each["kind"] for each in (first, *rest)]


def test_events_go_by_their_own_age_once_every_reader_has_them(driver: Driver) -> None:
    talkative(driver)
    for _ in range(3):
        complete_one(driver)
    every = events(driver)
    age(driver)
    assert sweep_events(driver) == 0, "nobody said how long"
    keep_events(driver, 3 * 86400)
    assert sweep_events(driver) == 0, "not old enough"
    keep_events(driver, 86400)
    read_to(driver, "slow", every[4])

    assert sweep_events(driver) == 5

    assert [each["id"] for each in events(driver)] == [each["id"] for each in every[5:]]
    driver.rows("delete from treadle.event_readers")
    assert sweep_events(driver) == len(every) - 5


def test_an_event_of_a_transaction_that_is_open_is_not_behind_anybody(driver: Driver) -> None:
    keep_events(driver, 0)
    other = driver.another()
    other.rows("begin")
    other.rows("select treadle.emit_event('early')")
    driver.rows("select treadle.pause_queue('default')")

    assert sweep_events(driver) == 0

    other.rows("commit")
    assert sweep_events(driver) == 2


def test_an_emitted_event_is_kept_for_tasks_that_were_made_before_it(driver: Driver) -> None:
    keep_events(driver, 3600)
    claim = claimed(driver)
    driver.rows("select treadle.emit_event('paid', '{\"n\": 1}', '7', 'once')")
    age(driver, timedelta(hours=2))

    assert sweep_events(driver) == 0
    assert expect(driver, claim, "paid", key="7")["status"] == "answered"

    driver.complete(claim)
    assert sweep_events(driver) == 1
    assert driver.rows("select * from treadle.topics") == []
    # Its key is free again, and the topic starts over.
    driver.rows("select treadle.emit_event('paid', '{}', '7', 'once')")
    assert driver.value("select count(*) from treadle.topics") == 1


def test_long_offline_agents_are_pruned_unless_they_have_tasks_or_budgets(driver: Driver) -> None:
    for name in ("gone", "rich", "busy", "away"):
        driver.agent(name)
    driver.enqueue(assigned_agent="busy")
    driver.claim_one("busy")
    set_budget(driver, "agent", "rich", 1)
    driver.rows("update treadle.agents set status = 'offline' where id <> 'away'")
    driver.rows("select treadle.set_retention('agents', 86400)")
    rest = "select * from treadle.prune_other()"
    assert ("agents", 0) in driver.rows(rest)
    silence = "update treadle.agents set heartbeat_at = now() - interval '2 days' "
    driver.rows(f"{silence} where id not in ('a', 'b')")

    assert ("agents", 1) in driver.rows(rest)

    left = {name for (name,) in driver.rows("select id from treadle.agents")}
    assert left == {"a", "b", "rich", "busy", "away"}


def test_idle_keys_and_old_uses_of_gates_are_pruned(driver: Driver) -> None:
    driver.rows("select treadle.define_gate('llm', %s)", Jsonb({"limit": 5, "per_s": 1}))
    driver.rows("insert into treadle.gate_uses values ('llm', 1, 1)")
    driver.enqueue(concurrency_key="used")
    driver.rows("select treadle.admit_waiting_tasks()")
    driver.rows("insert into treadle.concurrency_keys (key) values ('idle')")
    driver.rows("select treadle.set_concurrency_limit('wide', 3)")
    driver.rows("select treadle.admit_waiting_tasks()")

    found = dict(driver.rows("select * from treadle.prune_other()"))

    assert (found["concurrency_keys"], found["gate_uses"]) == (1, 1)
    keys = {key for (key,) in driver.rows("select key from treadle.concurrency_keys")}
    assert keys >= {"wide"}
    assert "idle" not in keys
