"""An exhausted budget asks once, or fails the tasks that it cannot pay; the answer is applied."""

from decimal import Decimal
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.budgets import budget, dag, kinds, money, pay, question, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.races import together
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import answer

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]


def asked(driver: Driver, count: int = 3, **options: object) -> tuple[int, list[UUID]]:
    """A DAG of tasks at $2 with a budget of $1: the first asks, the others are parked."""
    _, budget_id = dag(driver, count, 1, max_cost_usd=2, **options)
    assert driver.claim("a", limit=10) == []
    [(first, verdict)] = review(driver)
    assert verdict == "asked"
    rest = driver.rows("select id from treadle.tasks where id <> %s order by rank, id", first)
    return budget_id, [first, *(row[0] for row in rest)]


def test_one_task_asks_and_the_others_stay_parked(driver: Driver) -> None:
    budget_id, tasks = asked(driver)

    wait = question(driver, tasks[0])
    assert (wait["kind"], wait["budget_id"], wait["awaited"]) == ("budget", budget_id, True)
    assert wait["question"].startswith(
        "$0.00 of $1.00 is spent of the budget of DAG costly; the task needs $2.00."
    )
    assert [driver.state_of(each) for each in tasks] == ["blocked", "pending", "pending"]
    assert kinds(driver) == ["budget.exhausted"]
    assert review(driver) == []


def test_many_promoters_ask_once(driver: Driver) -> None:
    dag(driver, 5, 1, max_cost_usd=2)
    driver.claim("a", limit=10)

    said = together(driver, 8, lambda session, _: review(session))

    assert sum(len(each) for each in said) == 1
    assert driver.value("select count(*) from treadle.waits") == 1


def test_a_number_is_the_new_limit_and_those_that_fit_continue(driver: Driver) -> None:
    budget_id, tasks = asked(driver)

    assert answer(driver, question(driver, tasks[0])["id"], 5) == "answered"

    assert budget(driver, budget_id)["limit_usd"] == 5
    claims = driver.claim("b", limit=10)
    assert len(claims) == 2
    assert money(driver, budget_id) == (0, 4)
    [(third, _)] = [(each, 0) for each in tasks if each not in {claim.id for claim in claims}]
    assert driver.task(third)["budget_id"] == budget_id
    assert review(driver) == []


def test_no_gives_the_task_up_and_the_next_one_asks(driver: Driver) -> None:
    _, tasks = asked(driver)

    answer(driver, question(driver, tasks[0])["id"], False)

    task = driver.task(tasks[0])
    assert (task["status"], task["failure_class"]) == ("dead_lettered", "budget_exceeded")
    assert task["failure_reason"] == "alice refused to raise the limit"
    [letter] = driver.records("select * from treadle.dead_letters")
    assert (letter["task_id"], letter["class"]) == (tasks[0], "budget_exceeded")
    assert review(driver) == [(tasks[1], "asked")]


@pytest.mark.parametrize(
    ("policy", "then"), [("wait", "pending"), ("cancel", "cancelled"), ("continue", "ready")]
)
def test_the_answer_no_also_cancels_the_dependents(driver: Driver, policy: str, then: str) -> None:
    edge = {"task": "dear", "optional": policy == "continue"}
    document = {
        "name": "chain",
        "budget_usd": 1,
        "on_dead_letter": policy,
        "tasks": [
            {"name": "dear", "type": "code", "max_cost_usd": 2},
            {"name": "next", "type": "code", "after": [edge]},
        ],
    }
    ids = driver.value("select ids from treadle.create_dag(%s)", Jsonb(document))
    driver.claim("a")
    review(driver)

    answer(driver, question(driver, ids[0])["id"], False)

    assert [driver.state_of(each) for each in ids] == ["dead_lettered", then]


def test_a_raise_answers_the_question(driver: Driver) -> None:
    budget_id, tasks = asked(driver)
    wait_id = question(driver, tasks[0])["id"]
    dag_id = driver.task(tasks[0])["dag_id"]

    assert set_budget(driver, "dag", dag_id, 2, actor="carol") == budget_id

    [wait] = driver.records("select * from treadle.waits where id = %s", wait_id)
    assert (wait["status"], wait["answer"], wait["answered_by"]) == ("answered", 2, "carol")
    assert len(driver.claim("b", limit=10)) == 1


def test_a_raise_that_is_not_enough_leaves_the_question_open(driver: Driver) -> None:
    _, tasks = asked(driver)

    set_budget(driver, "dag", driver.task(tasks[0])["dag_id"], "1.99")

    assert question(driver, tasks[0])["status"] == "open"
    assert driver.claim("b", limit=10) == []


def test_an_answer_that_is_not_enough_asks_again(driver: Driver) -> None:
    _, tasks = asked(driver, count=1)

    answer(driver, question(driver, tasks[0])["id"], 1.5)
    assert driver.claim("a") == []
    assert review(driver) == [(tasks[0], "asked")]

    assert "of $1.50 is spent" in question(driver, tasks[0])["question"]


@pytest.mark.parametrize("value", [-1, "much", None, True, [5], {"usd": 5}, 1e12])
def test_an_answer_that_is_neither_an_amount_nor_no_is_rejected(
    driver: Driver, value: object
) -> None:
    _, tasks = asked(driver)
    wait_id = question(driver, tasks[0])["id"]

    with unchanged(driver), refused("TR001"):
        answer(driver, wait_id, value)


def test_an_answer_below_what_is_spent_is_refused(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    driver.enqueue(max_cost_usd=4)
    claim = driver.claim_one("a")
    pay(driver, claim, 3)
    other = driver.enqueue(max_cost_usd=10)
    driver.claim("b")
    review(driver)

    with unchanged(driver), refused("TR001", r"\$3.00 is spent and \$1.00 reserved"):
        answer(driver, question(driver, other)["id"], 3)
    answer(driver, question(driver, other)["id"], 14)

    assert budget(driver, budget_id)["limit_usd"] == 14
    assert len(driver.claim("b")) == 1


def test_the_policy_fail_gives_up_what_the_budget_cannot_pay(driver: Driver) -> None:
    set_budget(driver, "type", "code", 1, on_exhausted="fail")
    dear = driver.enqueue(max_cost_usd=2)
    cheap = driver.enqueue(max_cost_usd=1, priority=90)

    claim = driver.claim_one("a")
    assert claim.id == cheap
    waits = driver.enqueue(max_cost_usd=1)
    assert driver.claim("a") == []
    assert review(driver) == [(dear, "dead_lettered")]

    task = driver.task(dear)
    assert (task["failure_class"], task["attempt"]) == ("budget_exceeded", 0)
    assert "the task needs $2.00" in task["failure_reason"]
    assert driver.state_of(waits) == "pending"
    assert kinds(driver)[-1] == "budget.exhausted"


@pytest.mark.parametrize(("of_task", "of_budget"), [("fail", "ask"), ("ask", "fail")])
def test_the_policy_of_the_task_takes_precedence_over_the_budget(
    driver: Driver, of_task: str, of_budget: str
) -> None:
    set_budget(driver, "all", None, 1, on_exhausted=of_budget)
    task_id = driver.enqueue(max_cost_usd=2, on_budget=of_task)
    driver.claim("a")

    [(moved, verdict)] = review(driver)

    assert (moved, verdict) == (task_id, {"ask": "asked", "fail": "dead_lettered"}[of_task])


def test_changing_the_policy_ends_waiting_tasks(driver: Driver) -> None:
    _, tasks = asked(driver)

    set_budget(driver, "dag", driver.task(tasks[0])["dag_id"], 1, on_exhausted="fail")
    moved = review(driver)

    assert sorted(moved) == sorted((each, "dead_lettered") for each in tasks)
    assert driver.rows("select status from treadle.waits") == [("cancelled",)]


def test_a_cancelled_task_takes_its_question_along(driver: Driver) -> None:
    _, tasks = asked(driver)

    driver.cancel(tasks[0])

    assert review(driver) == [(tasks[1], "asked")]


def test_a_removed_budget_holds_nothing_back(driver: Driver) -> None:
    _, tasks = asked(driver)
    driver.rows("select treadle.remove_budget('dag', %s::text)", driver.task(tasks[0])["dag_id"])

    assert len(driver.claim("b", limit=10)) == 3
    assert driver.rows("select status from treadle.waits") == [("answered",)]
    assert driver.value("select count(*) from treadle.reservations") == 0


def test_a_dead_letter_that_is_retried_after_a_raise_runs(driver: Driver) -> None:
    set_budget(driver, "all", None, 1, on_exhausted="fail")
    task_id = driver.enqueue(max_cost_usd=2)
    driver.claim("a")
    review(driver)
    set_budget(driver, "all", None, 2)

    driver.retry(task_id)

    claim = driver.claim_one("a")
    pay(driver, claim, Decimal(2))
    driver.complete(claim)
    assert driver.state_of(task_id) == "completed"


def test_a_dead_letter_can_be_retried_with_another_limit(driver: Driver) -> None:
    set_budget(driver, "all", None, 1, on_exhausted="fail")
    task_id = driver.enqueue(max_cost_usd=2)
    driver.claim("a")
    review(driver)

    driver.retry(task_id, "modify_and_retry", {"max_cost_usd": 1})

    assert driver.claim_one("a").max_cost_usd == Decimal(1)
