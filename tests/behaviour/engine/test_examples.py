"""The examples run as documented."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from examples import hello, orders, research_agent
from treadle.errors import TaskNotFound
from treadle.testing import TaskRunner

ROOT = Path(__file__).parents[3]
TUTORIAL = ROOT / "docs" / "tutorial" / "research-agent.md"


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the model is asked, call by call."""
    asked: list[str] = []
    model = research_agent.fake_model

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return model(prompt)

    monkeypatch.setattr(research_agent, "fake_model", ask)
    return asked


async def test_hello_greets(database_url: str) -> None:
    async with TaskRunner(hello.app, database_url) as harness:
        assert await harness.run_inline(hello.hello, name="Ada") == "Hello, Ada!"


@pytest.mark.requirement("B8")
async def test_an_order_and_its_task_are_one_transaction(
    database_url: str, sync_conn: psycopg.Connection[tuple[Any, ...]]
) -> None:
    sync_conn.execute(orders.TABLES.encode())
    async with TaskRunner(orders.app, database_url) as harness:
        with psycopg.connect(database_url) as conn:
            kept, handle = orders.place_order(conn, "a loom")
            conn.commit()
            _, forgotten = orders.place_order(conn, "another loom")
            conn.rollback()

        assert await harness.drain() == {"completed": 1}
        assert await handle.result(timeout=30) == f"label-{kept}"
        with pytest.raises(TaskNotFound):
            await harness.state_of(forgotten)

    assert sync_conn.execute("select order_id from shipments").fetchall() == [(kept,)]


async def test_research_is_published_when_a_person_has_approved_it(
    database_url: str, prompts: list[str]
) -> None:
    async with TaskRunner(research_agent.app, database_url) as harness:
        handle = await research_agent.research.enqueue(subject="looms")

        assert await harness.drain() == {"blocked": 1, "completed": 2}
        await harness.answer(handle, "revise", by="ada", note="Say why.")
        assert await harness.drain() == {"blocked": 1, "completed": 2}
        await harness.answer(handle, "approve", by="ada")
        assert await harness.drain() == {"completed": 3}

        assert await handle.result() == {
            "report": "Report. Much has been written about the history of looms."
            " Much has been written about looms today. Say why.",
            "published": True,
            "by": "ada",
        }
        details = await harness.app.db.tasks.get(handle.id)
    # Nothing was paid for twice, though the handler ran four times; nor did that cost attempts.
    assert sorted(prompt.partition(":")[0] for prompt in prompts) == [
        "Plan", "Read", "Read", "Write", "Write",
    ]  # fmt: skip
    assert (float(details["cost_usd"]), details["attempt"]) == (0.06, 1)


async def test_research_that_is_not_approved_in_time_is_not_published(database_url: str) -> None:
    async with TaskRunner(research_agent.app, database_url) as harness:
        handle = await research_agent.research.enqueue(subject="looms")
        await harness.drain()

        await harness.clock.advance(timedelta(days=2))
        assert await harness.drain(promote=True) == {"completed": 3}

        assert (await handle.result())["published"] is False


def test_the_tutorial_ends_with_the_example() -> None:
    [*_, last] = re.findall(r"```python\n# agent.py\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    program = (ROOT / "examples" / "research_agent.py").read_text()

    assert last == program.split('"""\n\n', 1)[1]
