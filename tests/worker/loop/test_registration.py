"""A worker registers what it is: its slots, models, capabilities and budget."""

import pytest

from tests.drivers.workers import Conn, row, run_all
from treadle import Treadle
from treadle.errors import ConfigurationError

pytestmark = pytest.mark.requirement("F28")
AGENT = """
    select max_concurrent_tasks, models, capabilities, budget_usd
    from treadle.agent_load where agent_id = 'w1'
"""


async def test_a_worker_registers_its_slots_models_capabilities_and_budget(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def work() -> None: ...

    await run_all(
        app, agent="w1", slots=3, models=["large", "small"], capabilities=["git"], budget_usd=12.5
    )
    assert await row(conn, AGENT) == (3, ["large", "small"], ["git"], 12.5)

    # A budget that is not given stays, also one that a person has set.
    await conn.execute("select treadle.set_budget('agent', 'w1', 40)")
    await run_all(app, agent="w1", slots=4)
    assert await row(conn, AGENT) == (4, [], [], 40)


async def test_a_worker_claims_ahead_of_the_slots_that_it_registers(
    app: Treadle, conn: Conn
) -> None:
    held: list[int] = []

    @app.task()
    async def work() -> None:
        query = "select current_tasks from treadle.agent_load where agent_id = 'w1'"
        held.append((await row(conn, query))[0])

    await work.enqueue_many([{}] * 30)

    await run_all(app, agent="w1", slots=1)

    assert max(held) > 1


async def test_a_budget_needs_the_name_of_an_agent(app: Treadle) -> None:
    with pytest.raises(ConfigurationError, match="needs an id") as raised:
        await app.run_worker(budget_usd=1)

    assert raised.value.hint is not None
    assert "--agent" in raised.value.hint
