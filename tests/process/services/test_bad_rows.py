"""A row that cannot be processed neither stops the reaper or promoter nor makes it spin."""

from uuid import UUID

import anyio
import pytest

from tests.drivers.processes.children import Conn, Spawn, rows, until
from tests.drivers.processes.postgres_proxy import Proxy
from treadle import Treadle
from treadle.services.promoter import Promoter
from treadle.services.reaper import Reaper
from treadle.services.service import Service
from treadle.settings import load_settings

# Stands for whatever may be wrong with a row: it cannot leave its state.
TRAP = """
    create or replace function trap() returns trigger language plpgsql as $$
    begin
      raise exception 'this row is broken';
    end $$;
    create or replace trigger trap before update of status on treadle.tasks
    for each row when (old.title = 'bad' and new.status in ('ready', 'dead_lettered', 'retrying'))
    execute function trap();
"""
AGE = """
    update treadle.tasks set lease_until = clock_timestamp() - interval '1 s'
    where status = 'running'
"""
SERVICES: list[type[Service]] = [Reaper, Promoter]


async def make_due(app: Treadle, conn: Conn, kind: str) -> tuple[UUID, set[UUID]]:
    """One broken task and ten others that are due for the reaper or the promoter."""
    delay = 0.2 if kind == "promoter" else 0
    made = [
        await app.enqueue(
            "nap", {"naps": [0]}, title="bad" if n == 3 else "good", delay=delay, max_attempts=1
        )
        for n in range(11)
    ]
    await conn.execute(TRAP)
    if kind == "reaper":
        await conn.execute("select treadle.register_agent('ghost')")
        await conn.execute("select id from treadle.claim_tasks('ghost', p_limit => 100)")
        await conn.execute(AGE)
    return made[3].id, {handle.id for handle in made} - {made[3].id}


async def moved(conn: Conn, kind: str) -> set[UUID]:
    """The tasks that the service has moved on."""
    status = "dead_lettered" if kind == "reaper" else "ready"
    found = await rows(conn, "select id from treadle.tasks where status = %s", status)
    return {task for (task,) in found}


@pytest.mark.parametrize("kind", ["reaper", "promoter"])
async def test_a_bad_row_is_reported_once_and_the_others_go_through(
    app: Treadle, conn: Conn, spawn: Spawn, kind: str
) -> None:
    bad, good = await make_due(app, conn, kind)

    service = spawn(kind, service_s=0.2)

    line = await service.logged(f"{kind}.row_skipped", task_id=str(bad))
    assert line["problem"] == "this row is broken"
    await until(lambda: _equal(conn, kind, good))
    # What comes later goes through as well.
    _, more = await make_due(app, conn, kind)
    await until(lambda: _equal(conn, kind, good | more))
    assert len(service.events(f"{kind}.row_skipped", task_id=str(bad))) == 1
    assert service.running


@pytest.mark.parametrize("kind", SERVICES, ids=["reaper", "promoter"])
async def test_a_bad_row_does_not_make_a_service_spin(
    app: Treadle, conn: Conn, database_url: str, kind: type[Service]
) -> None:
    _, good = await make_due(app, conn, kind.name)
    async with Proxy(database_url) as proxy:
        far = Treadle(settings=load_settings(database_url=proxy.url))
        async with far.service(kind) as service, anyio.create_task_group() as group:
            group.start_soon(service.run)
            await until(lambda: _equal(conn, kind.name, good))
            await anyio.sleep(1)
            before, began = proxy.requests, anyio.current_time()
            await anyio.sleep(2)
            rate = (proxy.requests - before) / (anyio.current_time() - began)
            service.stop()

    # About a round in a second: of three calls for the reaper, of seven for the promoter.
    assert rate <= (12 if kind is Promoter else 6)


async def _equal(conn: Conn, kind: str, wanted: set[UUID]) -> bool:
    return await moved(conn, kind) == wanted
