"""One process may run everything that a small installation needs, and a lone worker says so."""

import signal

from tests.drivers.processes.children import Conn, Spawn, all_completed, until
from treadle import Treadle
from treadle.worker import loop

SOON = [(loop, "ALONE_AFTER_S", 0.1)]


async def test_a_worker_with_services_retries_promotes_and_stops_together(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    worker = spawn("worker", "--with-services", service_s=0.2, constants=SOON)
    for name in ("worker", "reaper", "promoter", "scheduler"):
        await worker.logged(f"{name}.started")

    await app.enqueue("nap", {"naps": [0]}, delay=0.1)
    await app.enqueue("stumble")

    await all_completed(conn, 2)
    worker.send(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert [line["event"] for line in worker.lines()][-1].endswith(".stopped")
    assert worker.events("worker.services_missing") == []


async def test_a_worker_names_the_services_that_are_missing(app: Treadle, spawn: Spawn) -> None:
    spawn("reaper")

    async def has_reaper() -> bool:
        return "reaper" in await app.db.agents.running_services()

    await until(has_reaper)

    worker = spawn("worker", constants=SOON)

    line = await worker.logged("worker.services_missing")
    assert line["missing"] == ["promoter"]
    assert "--with-services" in line["hint"]
