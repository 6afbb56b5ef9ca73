"""Files that cannot be read: changed, missing or unknown ones."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.drivers.stores import StoreFixture
from tests.drivers.workers import run_all
from treadle import Artifact, Context, Treadle
from treadle.errors import ArtifactNotFound, InvalidArgument, StoreError, TreadleError
from treadle.testing import TaskRunner

pytestmark = pytest.mark.requirement("F21")


async def test_a_changed_or_missing_file_is_detected(
    stored: Treadle, file_store: StoreFixture, tmp_path: Path
) -> None:
    told: list[tuple[type, str]] = []

    @stored.task()
    async def look(ctx: Context) -> None:
        made = [await ctx.artifact.put("a", data) for data in (b"cat",) * 4 + (b"",)]
        keys = [each["uri"].removeprefix(f"{file_store.url}/") for each in made]
        file_store.write(keys[0], b"dog")
        file_store.write(keys[1], b"ca")
        file_store.write(keys[2], b"cats")
        file_store.remove(keys[3])
        file_store.remove(keys[4])
        for each in made:
            try:
                await ctx.artifact.get(each, to=tmp_path / "got")
            except TreadleError as error:
                told.append((type(error), str(error)))

    await look.enqueue()
    await run_all(stored)

    assert [kind for kind, _ in told] == [
        StoreError,
        StoreError,
        StoreError,
        ArtifactNotFound,
        ArtifactNotFound,
    ]
    assert all("is damaged" in text for _, text in told[:3])
    assert [path async for path in anyio.Path(tmp_path).glob("*got*")] == []


async def test_an_unknown_artifact_is_not_found(stored: Treadle) -> None:
    told: list[type] = []

    @stored.task()
    async def look(ctx: Context) -> None:
        linked = await ctx.artifact.link("site", "https://example.org")
        nobody = "01890000-0000-7000-8000-00000000dead"
        given: list[Any] = ["none", nobody, {"id": nobody}, linked, {}, 7, "a\0b", {"id": 7}]
        for each in given:
            try:
                await ctx.artifact.get(each)
            except TreadleError as error:
                told.append(type(error))

    await look.enqueue()
    await run_all(stored)

    assert told == [ArtifactNotFound] * 3 + [InvalidArgument] * 5


async def test_the_fields_of_a_dict_input_are_not_trusted(
    stored: Treadle, file_store: StoreFixture
) -> None:
    @stored.task()
    async def look(ctx: Context) -> str:
        made = await ctx.artifact.put("a", b"cat")
        forged: Artifact = {**made, "uri": "file:///etc/passwd", "sha256": "0" * 64, "bytes": 1}
        return (await ctx.artifact.get(forged)).decode()

    handle = await look.enqueue()
    await run_all(stored)

    assert await handle.result(timeout=5) == "cat"


async def test_a_test_of_an_application_keeps_its_files_in_memory(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TREADLE_ARTIFACTS_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    app = Treadle(database_url)

    @app.task()
    async def draw(ctx: Context) -> Artifact:
        return await ctx.artifact.put("cat", b"a cat")

    async with TaskRunner(app, database_url) as harness:
        made = await harness.run_inline(draw)
        handle = await draw.enqueue()
        await harness.drain()
        other = await handle.result(timeout=5)
        read = [await (await app.artifacts.open(each)).read() for each in (made, other)]

    assert read == [b"a cat", b"a cat"]
    assert [path async for path in anyio.Path(tmp_path).iterdir()] == []
