"""The files of a task: stored as streams, found by name or id, passed to the next task."""

import hashlib
import io
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.drivers.stores import StoreFixture, pieces
from tests.drivers.workers import Conn, row, rows, run_all
from treadle import Artifact, Context, Treadle

pytestmark = pytest.mark.requirement("F21")
CAT = b"a cat" * 1000
DIGEST = hashlib.sha256(CAT).hexdigest()


async def test_a_file_is_stored_with_its_hash_size_and_media_type(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    @stored.task()
    async def draw(ctx: Context) -> Artifact:
        return await ctx.artifact.put("cat.png", CAT)

    handle = await draw.enqueue()
    await run_all(stored)

    made = await handle.result(timeout=5)
    assert made.keys() == {"id", "name", "uri", "media_type", "bytes", "sha256"}
    assert (made["name"], made["media_type"]) == ("cat.png", "image/png")
    assert (made["bytes"], made["sha256"]) == (5000, DIGEST)
    [(key, content)] = file_store.files().items()
    assert (content, made["uri"]) == (CAT, f"{file_store.url}/{key}")
    [_, task, artifact] = key.split("/")
    assert (task, artifact) == (str(handle.id), made["id"])
    found = await row(conn, "select status, key, attempt from treadle.artifacts")
    assert found == ("stored", key, 1)


async def test_all_that_has_bytes_can_be_stored(
    stored: Treadle, file_store: StoreFixture, tmp_path: Path
) -> None:
    (tmp_path / "cat").write_bytes(CAT)

    def plain() -> Any:
        yield CAT[:1]
        yield b""
        yield bytearray(CAT[1:])

    @stored.task()
    async def draw(ctx: Context) -> list[Artifact]:
        put = ctx.artifact.put
        async with await anyio.open_file(tmp_path / "cat", "rb") as later:
            return [
                await put("bytes", CAT),
                await put("view", memoryview(CAT)),
                await put("path", tmp_path / "cat"),
                await put("file", io.BytesIO(CAT)),
                await put("async file", later),
                await put("iterable", plain()),
                await put("list", [CAT]),
                await put("async iterable", pieces(CAT[:7], CAT[7:])),
            ]

    handle = await draw.enqueue()
    await run_all(stored)

    made = await handle.result(timeout=5)
    assert {each["sha256"] for each in made} == {DIGEST}
    assert {each["media_type"] for each in made} == {"application/octet-stream"}
    assert list(file_store.files().values()) == [CAT] * 8


async def test_an_empty_file_is_a_file(stored: Treadle, file_store: StoreFixture) -> None:
    @stored.task()
    async def blank(ctx: Context) -> list[Any]:
        made = await ctx.artifact.put("nothing.txt", b"", media_type="text/x-nothing")
        read = await ctx.artifact.get(made)
        return [made["bytes"], made["media_type"], read.decode()]

    handle = await blank.enqueue()
    await run_all(stored)

    assert await handle.result(timeout=5) == [0, "text/x-nothing", ""]
    assert list(file_store.files().values()) == [b""]


async def test_a_file_is_found_by_its_name_its_id_a_reference_and_what_put_gave(
    stored: Treadle, tmp_path: Path
) -> None:
    @stored.task()
    async def reread(ctx: Context) -> list[Any]:
        old = await ctx.artifact.put("cat", b"old")
        new = await ctx.artifact.put("cat", CAT)
        file = await ctx.artifact.open("cat")
        saved = await ctx.artifact.get(new, to=tmp_path / "saved")
        ways: list[Any] = [old, old["id"], f"artifact:{old['id']}"]
        return [
            [(await ctx.artifact.get(way)).decode() for way in ways],
            [len(chunk) async for chunk in file],
            file.artifact == new,
            await ctx.artifact.get("cat") == saved.read_bytes() == CAT,
            [each["attempt"] for each in await ctx.artifact.list()],
        ]

    handle = await reread.enqueue()
    await run_all(stored)

    found = await handle.result(timeout=5)
    assert found == [["old"] * 3, [5000], True, True, [1, 1]]
    assert [path.name async for path in anyio.Path(tmp_path).glob("*saved*")] == ["saved"]


async def test_the_next_task_is_given_the_file_and_reads_it(stored: Treadle) -> None:
    @stored.task()
    async def draw(ctx: Context) -> Artifact:
        await ctx.artifact.put("draft", b"no cat")
        return await ctx.artifact.put("cat.png", CAT)

    @stored.task()
    async def judge(ctx: Context, picture: Artifact, draft: Artifact, same: Artifact) -> list[Any]:
        assert picture == same
        return [picture["name"], len(await ctx.artifact.get(picture)), draft["bytes"]]

    async with stored.dag("show") as dag:
        drawn = dag.add(draw)
        judged = dag.add(
            judge,
            picture=drawn.artifact("cat.png"),
            draft=drawn.artifact("draft"),
            same=drawn.output,
        )
    await run_all(stored)

    assert await judged.handle.result(timeout=5) == ["cat.png", 5000, 6]


async def test_a_put_in_a_step_is_done_once_over_all_attempts(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    @stored.task(max_attempts=2, retry={"strategy": "immediate"})
    async def draw(ctx: Context) -> list[Any]:
        made = await ctx.step("draw", ctx.artifact.put, "cat", CAT)
        await ctx.artifact.put("note", b"attempt %d" % ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("not at first")
        listed = [[each["name"], each["attempt"]] for each in await ctx.artifact.list()]
        return [made["sha256"], (await ctx.artifact.get("note")).decode(), listed]

    handle = await draw.enqueue()
    await run_all(stored)
    await rows(conn, "select treadle.promote_tasks()")
    await run_all(stored)

    # The file of the attempt that failed is kept, and known to be of it.
    files = [["cat", 1], ["note", 1], ["note", 2]]
    assert await handle.result(timeout=5) == [DIGEST, "attempt 2", files]
    assert len(file_store.files()) == 3


async def test_plain_functions_store_and_read_in_their_threads(stored: Treadle) -> None:
    @stored.task()
    def draw(ctx: Context, folder: str) -> list[Any]:
        files = ctx.blocking.artifact
        made = files.put("cat", (CAT[at : at + 999] for at in range(0, 5000, 999)))
        linked = files.link("site", "https://example.org", size=3)
        saved = files.get(made, to=Path(folder) / "cat")
        return [
            files.get("cat") == saved.read_bytes() == b"".join(files.open(made)) == CAT,
            linked["uri"],
            [each["name"] for each in files.list()],
        ]

    async with anyio.TemporaryDirectory() as folder:
        handle = await draw.enqueue(folder=folder)
        await run_all(stored)

    assert await handle.result(timeout=5) == [True, "https://example.org", ["cat", "site"]]
