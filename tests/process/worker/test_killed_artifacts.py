"""A worker is killed while it stores a file: no reference dangles, and no file is orphaned."""

import hashlib
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import anyio
import pytest

from tests.drivers.apps.artifacts import DIGEST, POINTS, make_app
from tests.drivers.processes.children import Child, Conn, Spawn, rows, until
from tests.drivers.stores import StoreFixture
from treadle import Treadle
from treadle.artifacts.sweep import sweep
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("F21")
STORED = "select key, sha256, bytes from treadle.artifacts where status = 'stored'"
SEEN_AFTER_CRASH = {"reserved": 0, "writing": 0, "written": 0, "stored": 1, "step": 1}


@pytest.fixture
async def app(database_url: str, file_store: StoreFixture) -> AsyncIterator[Treadle]:
    """The application in this process, with its types declared."""
    settings = load_settings(database_url=database_url, **file_store.settings)
    async with make_app(settings) as made:
        await made.db.types.declare(made.registry.declaration(), made.registry.queues())
        yield made


@pytest.fixture
def start(database_url: str, file_store: StoreFixture, tmp_path: Path) -> Iterator[Spawn]:
    """Start a process of treadle that keeps files in the place."""
    children: list[Child] = []

    def run(*arguments: str, **settings: object) -> Child:
        given = {"database_url": database_url, **file_store.settings, **settings}
        log = tmp_path / f"{len(children)}-{arguments[0]}.log"
        children.append(Child(list(arguments), log=log, **given))
        return children[-1]

    yield run
    for child in children:
        child.end()


async def check_files(conn: Conn, file_store: StoreFixture) -> None:
    """Check that every visible artifact has its file, with the same hash and size."""
    files = file_store.files()
    for key, digest, size in await rows(conn, STORED):
        assert hashlib.sha256(files[key]).hexdigest() == digest
        assert len(files[key]) == size


async def sweep_now(app: Treadle) -> None:
    """Delete all orphaned files, regardless of their age."""
    found = await sweep(app.db, app.store, grace_s=-10)
    assert found.failed == 0


async def take_over(app: Treadle, conn: Conn, task: UUID) -> None:
    """Let the claim run out, as a reaper does, and run the task to its end here."""
    gone = "update treadle.tasks set lease_until = clock_timestamp() - interval '1 s' returning id"
    await rows(conn, gone)
    assert await rows(conn, "select id from treadle.reap_claims()") == [(task,)]
    await rows(conn, "update treadle.tasks set retry_at = clock_timestamp() returning id")
    assert await rows(conn, "select id from treadle.promote_tasks()") == [(task,)]
    with anyio.fail_after(30):
        await app.run_worker(agent="second", until_empty=True)


@pytest.mark.parametrize("point", POINTS)
async def test_a_crash_anywhere_before_completion_leaves_no_dangling_reference_and_no_lost_file(
    app: Treadle, conn: Conn, file_store: StoreFixture, start: Spawn, point: str
) -> None:
    handle = await app.enqueue("keep", {"point": point})
    first = start("worker", "tests.drivers.apps.artifacts:app", agent_id="first")
    assert await first.exit_code(within=30) == -signal.SIGKILL

    # The crash has left what it has left; nothing that can be seen is wrong.
    await check_files(conn, file_store)
    assert len(await rows(conn, STORED)) == SEEN_AFTER_CRASH[point]
    # The claim is not taken back yet: a sweep takes nothing away.
    before = file_store.files()
    await sweep_now(app)
    assert file_store.files() == before

    await take_over(app, conn, handle.id)

    made = await handle.result(timeout=5)
    assert made["sha256"] == DIGEST
    await sweep_now(app)
    await check_files(conn, file_store)
    # What is left is what can be seen: with the file of the attempt that failed, if it was stored.
    stored = await rows(conn, STORED)
    assert len(stored) == (2 if point == "stored" else 1)
    assert sorted(file_store.files()) == sorted(key for key, _, _ in stored)
    assert await rows(conn, "select id from treadle.artifacts where status <> 'stored'") == []
    content = await (await app.artifacts.open(made)).read()
    assert hashlib.sha256(content).hexdigest() == DIGEST


async def test_a_worker_that_was_only_paused_cannot_make_its_file_seen(
    app: Treadle, conn: Conn, file_store: StoreFixture, start: Spawn, tmp_path: Path
) -> None:
    hold = tmp_path / "go on"
    handle = await app.enqueue("keep", {"point": "none", "hold": str(hold)})
    first = start("worker", "tests.drivers.apps.artifacts:app", agent_id="first")
    await until(lambda: rows(conn, "select id from treadle.artifacts"), within=30)
    await first.pause()
    await take_over(app, conn, handle.id)
    made = await handle.result(timeout=5)
    await sweep_now(app)
    hold.touch()
    first.send(signal.SIGCONT)
    # It notices when its file is rejected, or by a heartbeat before that.
    await until(lambda: first.events("task.stopped") or first.events("task.result_stale"))
    first.kill()

    agents = await rows(conn, "select agent_id, id::text from treadle.artifacts")
    assert agents == [("second", made["id"])]

    async def is_swept() -> bool:
        # The store may finish an upload after its worker was killed: a later sweep deletes it.
        await sweep_now(app)
        return [key.split("/")[-1] for key in file_store.files()] == [made["id"]]

    await until(is_swept)
    await check_files(conn, file_store)
