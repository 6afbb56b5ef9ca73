"""The example's DAG in real processes: a killed worker costs time, but no call of the model."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from examples.landing_page import PRICES
from tests.drivers.processes.children import ROOT, Child, Conn, Spawn, rows, until, value

APP = "examples.landing_page:app"
# Nine calls: what one run costs when nothing goes wrong.
ONE_RUN_USD = Decimal("0.33")
AT_ONCE = """
    select treadle.define_queue('default', '{"retry": {"strategy": "immediate"}}')
"""
STEPS = """
    select tasks.name, steps.name, steps.attempt
    from treadle.steps
    inner join treadle.tasks on steps.task_id = tasks.id
    order by steps.saved_at
"""

Order = Callable[[], "subprocess.Popen[str]"]
Calls = Callable[[], list[tuple[str, str]]]
Start = Callable[[str], Child]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the fake model was asked, and which model it was, call by call."""
    file = tmp_path / "calls.jsonl"
    monkeypatch.setenv("MODEL_LOG", str(file))

    def read() -> list[tuple[str, str]]:
        found = [json.loads(line) for line in file.read_text().splitlines()]
        return [(call["prompt"], call["model"]) for call in found]

    return read


@pytest.fixture
def let_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """The build of the page, which costs nothing, ends when this is called."""
    gate = tmp_path / "gate"
    loop = f"until test -e {shlex.quote(str(gate))}; do sleep 0.05; done"
    monkeypatch.setenv("BUILD", shlex.join(["sh", "-c", loop]))
    yield gate.touch
    gate.touch()


@pytest.fixture
def start(
    calls: Calls, let_build: Callable[[], None], database_url: str, tmp_path: Path
) -> Iterator[Start]:
    """Start a worker of the example."""
    children: list[Child] = []

    def worker(agent: str) -> Child:
        log = tmp_path / f"{agent}.log"
        settings = {"database_url": database_url, "agent_id": agent, "slots": 3}
        children.append(Child(["worker", APP], log=log, **settings))
        return children[-1]

    yield worker
    for child in children:
        child.end()


@pytest.fixture
def order(database_url: str) -> Iterator[Order]:
    """Run the example as its reader does."""
    programs: list[subprocess.Popen[str]] = []

    def run() -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "examples.landing_page", "looms"]
        env = {**os.environ, "TREADLE_DATABASE_URL": database_url}
        programs.append(
            subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        )
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
        program.communicate()


@pytest.mark.requirement("B1")
@pytest.mark.requirement("F3")
@pytest.mark.requirement("F4")
async def test_a_worker_killed_between_two_steps_costs_no_call_of_the_model_twice(
    conn: Conn,
    spawn: Spawn,
    start: Start,
    order: Order,
    calls: Calls,
    let_build: Callable[[], None],
) -> None:
    await conn.execute(AT_ONCE)
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    workers = {agent: start(agent) for agent in ("first", "second")}
    program = order()

    # The page and its style are paid for; the build runs. Nothing else is under way.
    await until(lambda: _is_at_the_build(conn), within=30)
    killed = await value(conn, "select agent_id from treadle.tasks where name = 'implement'")
    workers[killed].kill()
    await conn.execute(
        "update treadle.tasks set lease_until = clock_timestamp() where name = 'implement'"
    )
    let_build()
    start("third")
    printed, _ = await anyio.to_thread.run_sync(program.communicate, None, 60)

    # All nine steps were called once: also the two of the killed attempt, and the one after it.
    made = calls()
    assert len({prompt for prompt, _ in made}) == len(made) == 9
    steps = await rows(conn, STEPS)
    assert len(steps) == 9
    assert [step for step in steps if step[0] == "implement"] == [
        ("implement", "page", 1),
        ("implement", "style", 1),
        ("implement", "review", 2),
    ]
    # The killed attempt is in the history, and it is the only one that failed.
    assert await rows(
        conn,
        """
        select tasks.name, attempts.attempt, attempts.agent_id, attempts.outcome, attempts.class,
          attempts.reason
        from treadle.attempts
        inner join treadle.tasks on attempts.task_id = tasks.id
        """,
    ) == [("implement", 1, killed, "failed", "crash", "heartbeat_timeout")]
    assert await value(conn, "select completed_by from treadle.tasks where name = 'implement'") in {
        "first",
        "second",
        "third",
    } - {killed}
    assert await rows(
        conn,
        """
        select overview.status, overview.completed, array_length(overview.roots, 1), leaf.name
        from treadle.dag_overview as overview
        inner join treadle.tasks as leaf on leaf.id = any (overview.leaves)
        """,
    ) == [("completed", 5, 3, "test_and_deploy")]
    # The sum is the price of one run.
    assert sum(Decimal(str(PRICES[model])) for _, model in made) == ONE_RUN_USD
    for query in (
        "select sum(usd) from treadle.spend",
        "select sum(cost_usd) from treadle.steps",
        "select sum(cost_usd) from treadle.tasks",
        "select cost_usd from treadle.dag_overview",
    ):
        assert await value(conn, query) == ONE_RUN_USD, query
    assert (program.returncode, printed.splitlines()[-1]) == (
        0,
        f"completed: 5 tasks, {ONE_RUN_USD:.6f} USD",
    )


async def _is_at_the_build(conn: Conn) -> bool:
    states = dict(await rows(conn, "select name, status from treadle.tasks"))
    steps = [step[1] for step in await rows(conn, STEPS) if step[0] == "implement"]
    return steps == ["page", "style"] and states == {
        "research": "completed",
        "design": "completed",
        "synthesise": "completed",
        "implement": "running",
        "test_and_deploy": "pending",
    }
