"""SIGTERM drains a worker; the second one cancels; no attempt is counted for either."""

import signal
from pathlib import Path

import pytest

from tests.drivers.apps.naps import Nap
from tests.drivers.processes.children import Child, Conn, Spawn, rows, statuses, until, value
from treadle import Treadle
from treadle.errors import TreadleError
from treadle.process import read_health_file

AGENT = "select status from treadle.agents where id = 'a'"
TASKS = "select status, attempt, count(*) from treadle.tasks group by 1, 2 order by 1"


async def start(
    app: Treadle, conn: Conn, spawn: Spawn, kind: str, nap: Nap, **more: object
) -> Child:
    """A worker with two handlers at work, and more to do."""
    worker = spawn("worker", agent_id="a", slots=2, **more)
    for _ in range(6):
        await app.enqueue(kind, {"naps": [nap]})

    async def busy() -> bool:
        return (await statuses(conn)).get("running") == 2

    await until(busy)
    return worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_the_first_signal_lets_handlers_finish_and_releases_the_rest(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path, number: signal.Signals
) -> None:
    rested = tmp_path / "rested"
    worker = await start(app, conn, spawn, "nap", str(rested), drain_s=600)

    worker.send(number)
    await worker.logged("worker.draining")
    rested.touch()

    assert await worker.exit_code() == 0
    assert await rows(conn, TASKS) == [("completed", 1, 2), ("ready", 0, 4)]
    assert await value(conn, "select count(*) from treadle.attempts") == 0
    assert await value(conn, AGENT) == "offline"
    assert worker.events("worker.draining", signal=number.name)
    assert worker.events("worker.stopped", completed=2)


async def test_the_second_signal_stops_handlers_and_gives_their_tasks_back(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    worker = await start(app, conn, spawn, "nap", 3600, drain_s=600)

    worker.send(signal.SIGTERM)
    await worker.logged("worker.draining")
    worker.send(signal.SIGTERM)

    assert await worker.exit_code(within=20) == 0
    assert await rows(conn, TASKS) == [("ready", 0, 6)]
    assert await value(conn, "select count(*) from treadle.attempts") == 0
    assert await rows(conn, "select from effects where what = 'end'") == []
    assert await value(conn, AGENT) == "offline"


@pytest.mark.parametrize("kind", ["nap", "doze"])
async def test_after_the_grace_handlers_are_given_up(
    app: Treadle, conn: Conn, spawn: Spawn, kind: str
) -> None:
    """A plain function cannot be stopped: the process ends without it."""
    worker = await start(app, conn, spawn, kind, 3600, drain_s=0.3)

    worker.send(signal.SIGTERM)

    assert await worker.exit_code(within=20) == 0
    assert await rows(conn, TASKS) == [("ready", 0, 6)]
    assert await value(conn, AGENT) == "offline"


async def test_the_health_file_distinguishes_a_live_worker_from_a_dead_one(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    file = tmp_path / "health"
    first = spawn("worker", "--health-file", str(file), agent_id="a")
    await until(file.exists)
    facts = read_health_file(file, max_age_s=10)
    first.send(signal.SIGTERM)
    assert await first.exit_code() == 0
    gone = not file.exists()

    second = spawn("worker", "--health-file", str(file), agent_id="a")
    await until(file.exists)
    second.kill()

    assert facts["status"] == "ok"
    assert facts["pid"] == first.pid
    assert gone
    with pytest.raises(TreadleError, match="old"):
        read_health_file(file, max_age_s=0)
