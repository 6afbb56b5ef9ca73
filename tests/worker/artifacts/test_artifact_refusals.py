"""Files that cannot be stored or read fail the attempt and leave nothing behind."""

import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.drivers.stores import StoreFixture, pieces
from tests.drivers.workers import Conn, expire, row, rows, run_all, statuses
from treadle import Context, Treadle
from treadle.artifacts.store import Store
from treadle.artifacts.sweep import sweep
from treadle.errors import (
    ConfigurationError,
    InvalidArgument,
    MissingExtra,
    StoreError,
    TooLarge,
)
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("F21")
MIB = 1024 * 1024


async def refused(app: Treadle, *puts: Any, **options: Any) -> list[tuple[type, str]]:
    """The errors of a handler that stores these names and data."""
    told: list[tuple[type, str]] = []

    @app.task("try")
    async def attempt(ctx: Context) -> None:
        for name, data in puts:
            try:
                await ctx.artifact.put(name, data, **options)
            except Exception as error:
                told.append((type(error), str(error)))

    await attempt.enqueue()
    await run_all(app)
    return told


async def nothing_left(conn: Conn, file_store: StoreFixture) -> bool:
    return (
        file_store.files() == {}
        and file_store.uploads() == 0
        and await rows(conn, "select id from treadle.artifacts") == []
    )


async def test_a_bad_name_is_refused(stored: Treadle, conn: Conn, file_store: StoreFixture) -> None:
    names: list[Any] = ["", "a\0b", "x" * 1001, None, 7]

    told = await refused(stored, *((name, b"x") for name in names))

    assert [kind for kind, _ in told] == [InvalidArgument] * 5
    assert all("name" in text for _, text in told)
    assert await nothing_left(conn, file_store)


async def test_a_name_is_never_a_path_in_the_store(
    stored: Treadle, file_store: StoreFixture
) -> None:
    names = ["../../etc/passwd", "/etc/passwd", "a/../../b", "..", "c:\\x", "☃\n#1"]

    assert await refused(stored, *((name, b"x") for name in names)) == []

    keys = list(file_store.files())
    assert len(keys) == 6
    assert all(set(key) <= set("0123456789abcdef-/") for key in keys)


async def test_data_without_bytes_is_rejected(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    text: Any = "text"
    given: list[Any] = [text, 7, None, [text], pieces(text), [b"x", 7]]

    told = await refused(stored, *(("a", data) for data in given))

    assert [kind for kind, _ in told] == [InvalidArgument] * 6
    assert await nothing_left(conn, file_store)


async def test_too_large_is_noticed_on_the_way_and_leaves_nothing(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield bytes(MIB)

    told = await refused(stored, ("a", endless()), ("b", bytes(20 * MIB + 1)), max_bytes=20 * MIB)

    assert [kind for kind, _ in told] == [TooLarge, TooLarge]
    assert len(taken) == 21
    assert await nothing_left(conn, file_store)


async def test_the_cap_of_the_settings_holds_for_every_put(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    stored.store.max_bytes = 10

    told = await refused(stored, ("a", bytes(11)), ("b", bytes(10)), max_bytes=100)

    assert [kind for kind, _ in told] == [TooLarge]
    assert [len(content) for content in file_store.files().values()] == [10]


async def test_an_error_of_the_data_source_is_raised_unchanged(
    stored: Treadle, conn: Conn, file_store: StoreFixture, tmp_path: Path
) -> None:
    def broken() -> Iterator[bytes]:
        for _ in range(20):
            yield bytes(MIB)
        raise PermissionError("no more")

    told = await refused(stored, ("a", broken()), ("b", tmp_path / "missing"))

    assert [kind for kind, _ in told] == [PermissionError, FileNotFoundError]
    assert await nothing_left(conn, file_store)


async def test_a_put_that_is_interrupted_leaves_nothing(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    async def slow() -> AsyncGenerator[bytes, None]:
        for _ in range(20):
            yield bytes(MIB)
        await anyio.sleep(60)

    @stored.task(timeout_s=1, max_attempts=1)
    async def draw(ctx: Context) -> None:
        await ctx.artifact.put("a", slow())

    await draw.enqueue()
    await run_all(stored)

    assert await row(conn, "select failure_class from treadle.tasks") == ("timeout",)
    assert await nothing_left(conn, file_store)


async def test_a_lost_claim_cannot_store_a_file(
    stored: Treadle, conn: Conn, file_store: StoreFixture
) -> None:
    @stored.task(max_attempts=1)
    async def draw(ctx: Context) -> None:
        async def taken() -> AsyncGenerator[bytes, None]:
            yield b"cat"
            await expire(conn, ctx.task.id)

        await ctx.artifact.put("a", taken())

    await draw.enqueue()
    await run_all(stored)

    # The file is not visible; the next sweep deletes it.
    assert await rows(conn, "select status from treadle.artifacts") == [("storing",)]
    swept = await sweep(stored.db, stored.store, grace_s=-10)
    assert (swept.rows, swept.failed) == (1, 0)
    assert await nothing_left(conn, file_store)


@pytest.mark.parametrize("kind", ["folder", "s3", "bucket"])
async def test_a_store_that_is_away_fails_the_attempt_and_not_the_worker(
    database_url: str, conn: Conn, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "file").write_bytes(b"")
    given = {
        "folder": {"artifacts_url": f"file://{tmp_path}/file"},
        "s3": {"artifacts_url": "s3://b", "artifacts_endpoint": "http://127.0.0.1:1"},
    }
    if kind == "bucket":
        request.getfixturevalue("monkeypatch").setenv("AWS_ACCESS_KEY_ID", "test")
        request.getfixturevalue("monkeypatch").setenv("AWS_SECRET_ACCESS_KEY", "test")
        endpoint = request.getfixturevalue("s3").endpoint
        given["bucket"] = {"artifacts_url": "s3://missing", "artifacts_endpoint": endpoint}
    settings = load_settings(database_url=database_url, **given[kind])
    async with Treadle(settings=settings) as app:

        @app.task(max_attempts=1)
        async def draw(ctx: Context) -> None:
            await ctx.artifact.put("a", b"cat")

        @app.task()
        async def other() -> None: ...

        await draw.enqueue()
        await other.enqueue()
        await run_all(app, within=30)
        with pytest.raises(StoreError):
            await sweep(app.db, app.store, grace_s=-10)

    assert await statuses(conn) == {"dead_lettered": 1, "completed": 1}
    [why] = await row(
        conn, "select failure_reason from treadle.tasks where failure_class = 'error'"
    )
    assert "StoreError" in why


@pytest.mark.parametrize(
    "url", ["/var/files", "http://x/y", "s3://key:secret@bucket", "s3://b?x=1", "nonsense", ""]
)
def test_an_address_that_makes_no_sense_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Store(url)

    assert "secret" not in str(raised.value)
    assert "TREADLE_ARTIFACTS_URL" in str(raised.value.hint)


async def test_without_the_extra_nothing_is_reserved_and_the_error_has_a_hint(
    stored: Treadle, conn: Conn, file_store: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)

    told = await refused(stored, ("a", b"x"))

    assert told == [(MissingExtra, "artifacts need obstore")]
    assert await nothing_left(conn, file_store)
