"""The review of exhausted budgets skips bad and locked tasks."""

from uuid import UUID

import pytest

from tests.drivers.budgets import money, review, set_budget
from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F25")

BAD = """
create function public.bad() returns trigger language plpgsql as $$
begin
  if new.status = 'dead_lettered' and new.title = 'bad' then
    raise exception 'this row cannot be moved';
  end if;
  return new;
end;
$$;
create trigger bad before update on treadle.tasks for each row execute function public.bad();
"""


def parked(driver: Driver, *titles: str) -> list[UUID]:
    """Tasks that a budget with the policy fail has no money for."""
    set_budget(driver, "all", None, 1, on_exhausted="fail")
    tasks = [driver.enqueue(max_cost_usd=2, title=title) for title in titles]
    assert driver.claim("a", limit=10) == []
    return tasks


def test_a_bad_task_is_reported_and_the_others_are_given_up(fresh: Driver) -> None:
    fresh.conn.execute(BAD.encode())
    first, bad, last = parked(fresh, "good", "bad", "good")

    moved = dict(fresh.rows("select id, problem from treadle.review_budgets()"))

    assert moved == {first: None, bad: "this row cannot be moved", last: None}
    again = "select id, problem from treadle.review_budgets(p_skip => %s::uuid[])"
    assert fresh.rows(again, [bad]) == []


def test_locked_tasks_are_left_for_the_next_review(driver: Driver) -> None:
    held, free = parked(driver, "held", "free")
    other = driver.another()
    other.rows("begin")
    other.rows("select id from treadle.tasks where id = %s for update", held)

    assert review(driver) == [(free, "dead_lettered")]
    other.rows("rollback")

    assert review(driver) == [(held, "dead_lettered")]


def test_a_question_is_closed_later_when_its_task_was_held(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    task_id = driver.enqueue(max_cost_usd=2)
    driver.claim("a")
    review(driver)
    other = driver.another()
    other.rows("begin")
    other.rows("select id from treadle.tasks where id = %s for update", task_id)

    set_budget(driver, "all", None, 2)
    other.rows("rollback")
    assert driver.state_of(task_id) == "blocked"
    review(driver)

    assert [claim.id for claim in driver.claim("a")] == [task_id]
    assert money(driver, budget_id) == (0, 2)


def test_a_budget_in_other_hands_is_not_waited_for(driver: Driver) -> None:
    set_budget(driver, "all", None, 1)
    task_id = driver.enqueue(max_cost_usd=2)
    driver.claim("a")
    other = driver.another()
    other.rows("begin")
    other.rows("select id from treadle.budgets for update")

    assert review(driver) == []
    other.rows("rollback")

    assert review(driver) == [(task_id, "asked")]
