"""Orphaned files are swept; a file that is being stored or is stored never is."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import anyio
import pytest
from structlog.testing import capture_logs

from tests.drivers.stores import StoreFixture
from tests.drivers.workers import Conn, row, rows, run_all, working
from treadle import Context, Treadle
from treadle.artifacts.store import Store, Written
from treadle.artifacts.sweep import Sweeper, SweepResult, sweep
from treadle.errors import StoreError
from treadle.services.pruner import Pruner

pytestmark = pytest.mark.requirement("F21")
MIB = 1024 * 1024


async def swept(app: Treadle, grace_s: float = -10, **options: Any) -> SweepResult:
    """A sweep for which nothing is too young."""
    return await sweep(app.db, app.store, grace_s=grace_s, **options)


async def drawn(app: Treadle, *contents: bytes) -> UUID:
    """A completed task that has stored these."""

    @app.task(f"draw.{uuid4()}")
    async def draw(ctx: Context) -> None:
        for content in contents:
            await ctx.artifact.put("cat", content)

    handle = await draw.enqueue()
    await run_all(app)
    return handle.id


async def test_a_sweep_at_every_point_of_a_put_takes_nothing_away(
    stored: Treadle, conn: Conn, file_store: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    points: list[tuple[str, list[str]]] = []

    async def look(point: str) -> None:
        points.append((point, (await swept(stored)).keys))

    async def chunks() -> AsyncGenerator[bytes, None]:
        await look("reserved")
        for number in range(20):
            yield bytes(MIB)
            if number % 4 == 3:
                await look("writing")

    real = Store.write

    async def write(self: Store, *given: Any, **options: Any) -> Written:
        written = await real(self, *given, **options)
        await look("written")
        return written

    monkeypatch.setattr(Store, "write", write)

    @stored.task()
    async def draw(ctx: Context) -> int:
        await look("begun")
        made = await ctx.artifact.put("cat", chunks())
        await look("stored")
        return len(await ctx.artifact.get(made))

    handle = await draw.enqueue()
    await run_all(stored)
    await look("completed")

    assert await handle.result(timeout=5) == 20 * MIB
    assert {point for point, _ in points} == {
        "begun", "reserved", "writing", "written", "stored", "completed"
    }  # fmt: skip
    assert [keys for _, keys in points if keys] == []
    assert [len(content) for content in file_store.files().values()] == [20 * MIB]


async def test_sweeps_beside_many_puts_take_nothing_away(
    stored: Treadle, file_store: StoreFixture
) -> None:
    @stored.task()
    async def draw(ctx: Context, n: int) -> str:
        return (await ctx.artifact.get(await ctx.artifact.put("n", str(n).encode()))).decode()

    handles = [await draw.enqueue(n=n) for n in range(30)]
    taken: list[str] = []
    async with working(stored):
        with anyio.fail_after(30):
            while len(file_store.files()) < 30:
                taken += (await swept(stored)).keys
        results = [await handle.result(timeout=10) for handle in handles]

    assert results == [str(n) for n in range(30)]
    assert taken == []


async def test_a_file_without_a_row_goes_and_foreign_files_stay(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    task = await drawn(stored, b"cat")
    [kept] = file_store.files()
    folder = kept.split("/")[0]
    orphans = [f"{folder}/{task}/{uuid4()}", f"{folder}/{uuid4()}/{uuid4()}"]
    foreign = [f"{folder}/readme.txt", f"{uuid4()}/{uuid4()}/{uuid4()}", "notes/cat"]
    for key in (*orphans, *foreign):
        file_store.write(key, b"x")

    assert (await swept(stored, grace_s=3600)).keys == []
    dry = await swept(stored, dry_run=True)
    assert (sorted(dry.keys), dry.files) == (sorted(orphans), 2)
    assert len(file_store.files()) == 6
    assert sorted((await swept(stored)).keys) == sorted(orphans)
    assert sorted(file_store.files()) == sorted([kept, *foreign])
    assert (await swept(stored)).keys == []


async def test_the_files_of_deleted_tasks_are_swept_and_not_visible_meanwhile(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    task, other = await drawn(stored, b"cat", b"dog"), await drawn(stored, b"cow")
    await rows(conn, "delete from treadle.tasks where id = %s returning id", task)

    assert len(await rows(conn, "select * from treadle.artifact_details")) == 1
    assert await rows(conn, "select * from treadle.list_artifacts(%s)", task) == []
    dry = await swept(stored, dry_run=True)
    assert (dry.rows, len(file_store.files())) == (2, 3)
    assert (await swept(stored, grace_s=3600)).rows == 2
    assert list(file_store.files().values()) == [b"cow"]
    assert await rows(conn, "select task_id, status from treadle.artifacts") == [(other, "stored")]


async def test_a_sweep_that_is_killed_between_file_and_row_is_finished_by_the_next(
    stored: Treadle, conn: Conn, file_store: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drawn(stored, b"cat", b"dog")
    await rows(conn, "delete from treadle.tasks returning id")

    async def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stored.db.artifacts, "forget", die)
        with pytest.raises(KeyboardInterrupt):
            await swept(stored)
    # The files went first: no row can be lost before its file is gone.
    assert (file_store.files(), await row(conn, "select count(*) from treadle.artifacts")) == (
        {},
        (2,),
    )

    assert (await swept(stored)).rows == 2
    assert await rows(conn, "select * from treadle.artifacts") == []


async def test_a_file_that_cannot_be_deleted_is_left_for_the_next_sweep(
    stored: Treadle, conn: Conn, file_store: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drawn(stored, b"cat", b"dog", b"cow")
    await rows(conn, "delete from treadle.tasks returning id")
    bad = next(key for key, content in file_store.files().items() if content == b"dog")
    real = Store.delete

    async def delete(self: Store, key: str) -> None:
        if key == bad:
            raise StoreError("it stays")
        await real(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "delete", delete)
        found = await swept(stored)
    assert (found.rows, found.failed) == (2, 1)
    assert await row(conn, "select key from treadle.artifacts") == (bad,)

    assert (await swept(stored)).rows == 1
    assert file_store.files() == {}


@pytest.mark.parametrize("file_store", ["folder"], indirect=True)
async def test_more_than_a_page_is_swept(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    await drawn(stored, b"cat")
    [kept] = file_store.files()
    folder = kept.split("/")[0]
    for _ in range(1100):
        file_store.write(f"{folder}/{uuid4()}/{uuid4()}", b"")
    await rows(
        conn,
        """
        insert into treadle.artifacts (id, task_id, claim_token, name, uri, key, status)
        select made.id, made.id, made.id, 'x', %s || made.key, made.key, 'doomed'
        from (
            select gen_random_uuid() as id, %s || '/x/' || gen_random_uuid() as key
            from generate_series(1, 1100)
        ) as made
        returning id
        """,
        *(f"{file_store.url}/", folder),
    )

    found = await swept(stored)

    assert (found.rows, found.files, list(file_store.files())) == (1100, 1100, [kept])
    assert await row(conn, "select count(*) from treadle.artifacts") == (1,)


async def test_a_process_sweeps_once_in_a_while_and_outlives_a_store_that_is_away(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    db = stored.db
    assert await Sweeper(db, lambda: Store("nonsense")).tick() is None
    await drawn(stored, b"cat")
    await rows(conn, "delete from treadle.tasks returning id")

    away = Sweeper(db, lambda: Store("nonsense"))
    assert await away.tick() is None
    sweeper = Sweeper(db, lambda: stored.store)
    found = await sweeper.tick()

    assert found is not None
    assert (found.rows, file_store.files(), await sweeper.tick()) == (1, {}, None)


async def test_the_pruner_takes_the_files_along(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    await drawn(stored, b"cat")
    await conn.execute("""select treadle.define_queue('default', '{"keep_completed_s": 0}')""")

    async with stored.service(Pruner) as pruner:
        assert isinstance(pruner, Pruner)
        done = await pruner.once()

    assert (done.pruned, file_store.files()) == (1, {})


pytestmark = pytest.mark.requirement("F21")


@pytest.mark.parametrize("file_store", ["folder"], indirect=True)
async def test_files_of_another_store_keep_their_rows_for_a_sweep_there(
    stored: Treadle, conn: Conn, file_store: StoreFixture, tmp_path: Path
) -> None:
    await drawn(stored, b"cat")
    await rows(conn, "delete from treadle.tasks returning id")
    other = Store((tmp_path / "other").as_uri())

    with capture_logs() as logs:
        found = await sweep(stored.db, other, grace_s=-10)

    assert (found.rows, found.keys, found.elsewhere) == (0, [], 1)
    assert [each["elsewhere"] for each in logs if each["event"] == "artifacts.skipped"] == [1]
    assert list(file_store.files().values()) == [b"cat"]
    assert (await swept(stored)).rows == 1
    assert file_store.files() == {}


@pytest.mark.parametrize("file_store", ["folder"], indirect=True)
async def test_a_sweep_is_stopped_after_the_page_in_hand(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    await drawn(stored, b"cat")
    folder = next(iter(file_store.files())).split("/")[0]
    for _ in range(1100):
        file_store.write(f"{folder}/{uuid4()}/{uuid4()}", b"")
    answers = iter([False, False, True])

    found = await swept(stored, stopping=lambda: next(answers))

    assert 0 < found.files <= 1000
    assert (await swept(stored)).files == 1100 - found.files
