"""A sweep stays in its own store, and ends when it is told to."""

from pathlib import Path
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from tests.worker.files import Place
from tests.worker.support import Conn, rows
from tests.worker.test_artifact_sweeping import drawn, swept
from treadle import Treadle
from treadle.artifacts.store import Store
from treadle.artifacts.sweeper import sweep

pytestmark = pytest.mark.requirement("F21")


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_files_of_another_store_keep_their_rows_for_a_sweep_there(
    stored: Treadle, conn: Conn, place: Place, tmp_path: Path
) -> None:
    await drawn(stored, b"cat")
    await rows(conn, "delete from treadle.tasks returning id")
    other = Store((tmp_path / "other").as_uri())

    with capture_logs() as logs:
        found = await sweep(stored.db, other, grace_s=-10)

    assert (found.rows, found.keys, found.elsewhere) == (0, [], 1)
    assert [each["files"] for each in logs if each["event"] == "artifacts.elsewhere"] == [1]
    assert list(place.files().values()) == [b"cat"]
    assert (await swept(stored)).rows == 1
    assert place.files() == {}


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_a_sweep_is_stopped_after_the_page_in_hand(
    stored: Treadle, conn: Conn, place: Place
) -> None:
    await drawn(stored, b"cat")
    folder = next(iter(place.files())).split("/")[0]
    for _ in range(1100):
        place.write(f"{folder}/{uuid4()}/{uuid4()}", b"")
    answers = iter([False, False, True])

    found = await swept(stored, stopping=lambda: next(answers))

    assert 0 < found.files <= 1000
    assert (await swept(stored)).files == 1100 - found.files
