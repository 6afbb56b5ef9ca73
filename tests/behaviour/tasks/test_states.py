"""The state machine: only the listed transitions occur, and impossible states cannot be stored."""

import random
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.drivers.dags import depend, spawn, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.refusals import allowed, refused, unchanged
from tests.drivers.waits import answer, open_wait
from tests.drivers.work import taken_up_again
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F2")

LOG = """
create table public.moves (
  n bigint generated always as identity, task_id uuid, from_status text, to_status text
);
create function public.log_move() returns trigger language plpgsql security definer as $$
begin
  insert into public.moves (task_id, from_status, to_status)
  values (new.id, case when tg_op = 'UPDATE' then old.status end, new.status);
  return null;
end;
$$;
create trigger log_move after insert or update of status on treadle.tasks
for each row execute function public.log_move();
select treadle.define_queue('default', '{"audit": "full"}');
select treadle.define_queue('slots', '{"audit": "full"}');
"""


def walk(driver: Driver, steps: int, chance: random.Random) -> None:
    """Do so many things at random, most of them sensible."""
    claims: list[Claim] = []
    past: list[Claim] = []
    ids: list[UUID] = []
    for _ in range(steps):
        near = [*ids, *(claim.id for claim in past)]
        step = chance.choices(
            [
                *("enqueue", "claim", "answer", "late answer"),
                *("cancel", "expire", "due", "retry", "unhold"),
                *("depend", "suspend", "ask", "decide", "validate"),
            ],
            [6, 6, 6, 4, 3, 3, 3, 3, 2, 4, 2, 3, 3, 5],
        )[0]
        if step == "enqueue":
            strategy = chance.choice(["immediate", "fixed"])
            extra: Record = chance.choice(
                [{}, {}, {"hold": True}, {"delay_s": 60}, {"hold": True, "delay_s": 60}]
            )
            attempts = chance.choice([1, 2])
            ids.append(driver.enqueue(retry={"strategy": strategy}, max_attempts=attempts, **extra))
            ids = ids[-15:]
        elif step == "claim":
            agent = chance.choice(["a", "b"])
            claims += driver.claim(agent, chance.randint(1, 3), start=chance.random() < 0.6)
            past = [*past, *claims][-15:]
        elif step == "answer" and claims:
            call = chance.choice(["complete", "fail", "release", "start", "heartbeat"])
            getattr(driver, call)(claims.pop())
        elif step == "validate" and claims:
            claim = chance.choice(claims)
            driver.rows("select treadle.validate_tasks(%s, %s)", [claim.id], [claim.token])
        elif step == "late answer" and past:
            call = chance.choice(["complete", "complete", "fail", "release", "start"])
            getattr(driver, call)(chance.choice(past))
        elif step == "cancel" and near:
            driver.cancel(chance.choice(near))
        elif step == "unhold" and near:
            driver.rows("select * from treadle.release_held_tasks(%s)", chance.choices(near, k=5))
        elif step == "expire" and near:
            driver.age_claim(chance.choice(near), timedelta(hours=1))
            driver.reap()
        elif step == "due" and near:
            waiting = "retry_at - interval '1 day', run_at = run_at - interval '1 day'"
            driver.rows(
                f"update treadle.tasks set retry_at = {waiting} where id = %s", chance.choice(near)
            )
            driver.promote()
        elif step == "retry" and near:
            with allowed("TR102"):
                driver.retry(chance.choice(near), chance.choice(["retry", "cancel"]))
        elif step == "depend" and near:
            with allowed("TR102", "TR103"):
                task = chance.choice(near)
                depend(driver, task, chance.choice(near))
                if chance.random() < 0.3:
                    driver.cancel(task)
                    driver.retry(task)
        elif step == "suspend" and claims:
            with allowed("TR101"):
                claim = claims.pop()
                children = spawn(driver, claim, [{"type": "code"}], str(uuid4()))
                suspend(driver, claim, children[: chance.randint(0, 1)])
        elif step == "ask" and claims:
            with allowed("TR101"):
                asking(driver, claims.pop(), chance)
        elif step == "decide":
            waits = driver.rows("select id from treadle.waits where status = 'open'")
            if waits:
                answer(driver, chance.choice(waits)[0], "yes")
            driver.rows("select treadle.expire_waits()")


def asking(driver: Driver, claim: Claim, chance: random.Random) -> None:
    """Wait for an answer, sometimes for a subtask as well."""
    opened = open_wait(driver, claim, {"question": "?"}, str(uuid4()))
    children = spawn(driver, claim, [{"type": "code"}], str(uuid4()))[: chance.randint(0, 1)]
    driver.rows(
        "select treadle.suspend_task(%s, %s, %s, %s)",
        *(claim.id, claim.token, children, [opened["wait_id"]]),
    )


def wait_for_slots(driver: Driver) -> None:
    """What only tasks with a concurrency key do, and a random run too seldom."""
    for _ in range(3):
        driver.enqueue(queue="slots", concurrency_key="k")
    late = driver.claim_one(queues=["slots"])
    driver.fail(late, retry_after=60)
    holder = driver.claim_one(queues=["slots"])
    driver.fall_due(late.id)
    driver.complete(late)
    driver.fail(holder, action="fail")
    driver.claim_one(queues=["slots"])
    driver.retry(holder.id)


def run_out_of_money(driver: Driver) -> None:
    """What only tasks do that a budget has no room for."""
    driver.rows("select treadle.set_budget('type', 'test', 1)")
    for policy in ("ask", "fail"):
        driver.enqueue(type="test", max_cost_usd=2, on_budget=policy)
    driver.claim(limit=2)
    driver.rows("select treadle.review_budgets()")
    answer(driver, driver.value("select id from treadle.waits"), False)


def test_every_transition_of_a_random_run_is_listed_and_has_an_event(fresh: Driver) -> None:
    fresh.conn.execute(LOG.encode())
    wait_for_slots(fresh)
    run_out_of_money(fresh)
    taken_up_again(fresh)
    listed = set(fresh.rows("select distinct from_status, to_status from treadle.transitions"))
    chance, made, rounds = random.Random(1), set[tuple[str, ...]](), 0

    while rounds < 2 or (listed - made and rounds < 20):
        walk(fresh, 500, chance)
        rounds += 1
        made = set(fresh.rows("select distinct from_status, to_status from public.moves"))

    assert {move for move in made if move[0] != move[1]} - listed == set()
    assert listed - made == set(), "the run did not go everywhere"
    # Every change of state after the first has at least one event.
    missing = fresh.rows(
        """
        select task_id from public.moves
        where from_status is distinct from to_status and from_status is not null
        group by task_id
        having count(*) > (select count(*) from treadle.events where task_id = moves.task_id)
        """
    )
    assert missing == []


def test_every_listed_transition_names_a_function_and_states_that_exist(driver: Driver) -> None:
    functions = {row[0] for row in driver.rows("select distinct by from treadle.transitions")}
    found = driver.rows("select proname from pg_proc where pronamespace = 'treadle'::regnamespace")
    assert functions <= {row[0] for row in found}

    check = driver.value(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'tasks_status_check'"
    )
    states = driver.rows(
        "select from_status from treadle.transitions where from_status is not null"
        " union select to_status from treadle.transitions"
    )
    assert all(f"'{state}'" in check for (state,) in states)


def test_no_listed_transition_leaves_completed(driver: Driver) -> None:
    rows = driver.rows("select by from treadle.transitions where from_status = 'completed'")

    assert rows == []


ILLEGAL = {
    "a state that does not exist": "status = 'failed'",
    "running without a claim": "status = 'running'",
    "claimed without a claim": "status = 'claimed'",
    "running without a lease": f"status = 'running', agent_id = 'a', claim_token = '{uuid4()}'",
    "running without an agent": f"status = 'running', claim_token = '{uuid4()}',"
    " lease_until = now()",
    "running without a token": "status = 'running', agent_id = 'a', lease_until = now()",
    "ready with a token": f"claim_token = '{uuid4()}'",
    "ready with a lease": "lease_until = now()",
    "ready with an agent": "agent_id = 'a'",
    "retrying without a time": "status = 'retrying'",
    "ready with a retry time": "retry_at = now()",
    "completed without a time": "status = 'completed'",
    "ready with an end": "completed_at = now()",
    "dead with a claim": f"status = 'dead_lettered', completed_at = now(), agent_id = 'a',"
    f" claim_token = '{uuid4()}', lease_until = now()",
    "a priority out of range": "priority = 101",
    "a negative attempt": "attempt = -1",
    "no attempts at all": "max_attempts = 0",
    "a time without end": "run_at = 'infinity'",
    "a timeout without end": "timeout_s = 'Infinity'",
    "an empty key": "idempotency_key = ''",
    "a negative cost": "cost_usd = -1",
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_not_even_a_superuser_can_store_an_impossible_state(driver: Driver, name: str) -> None:
    task_id = driver.enqueue()

    with unchanged(driver), refused("23514"):
        driver.rows(f"update treadle.tasks set {ILLEGAL[name]} where id = %s", task_id)


@pytest.mark.parametrize("column", ["agent_id", "claim_token", "lease_until"])
def test_a_running_task_cannot_lose_a_part_of_its_claim(driver: Driver, column: str) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    with unchanged(driver), refused("23514"):
        driver.rows(f"update treadle.tasks set {column} = null where id = %s", claim.id)
