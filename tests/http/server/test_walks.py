"""An enqueue runs through few files, and the architecture page names each of them."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

import treadle
from tests.drivers import tree
from treadle import Treadle
from treadle.api.app import make_app

PACKAGE = Path(treadle.__file__).parent
PAGE = tree.ROOT / "docs" / "explanation" / "architecture.md"


@contextmanager
def files_run() -> Iterator[set[str]]:
    """Collect the files of the package whose functions are called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                found.add(path.relative_to(PACKAGE).as_posix())

    # Another test may have left a formatter of treadle.logs for the log lines of libraries.
    logging.disable()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        logging.disable(logging.NOTSET)


def files_named(heading: str) -> set[str]:
    """The Python files in the table below a heading of the architecture page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n### {heading}\n")[1].split("\n### ")[0]
    rows = [line for line in section.splitlines() if re.match(r"\| \d+ \|", line)]
    return {name for row in rows for name in re.findall(r"`([a-z0-9_/]+\.py)`", row.split("|")[2])}


async def test_an_enqueue_in_python_runs_through_seven_files(database_url: str) -> None:
    app = Treadle(database_url)

    @app.task()
    async def greet(name: str) -> None:
        return None

    async with app:
        await greet.enqueue(name="Ada")
        with files_run() as found:
            await greet.enqueue(name="Bob")

    assert len(found) <= 7, sorted(found)
    assert found == files_named("Enqueue in Python")


async def test_an_enqueue_over_http_runs_through_twelve_files(database_url: str) -> None:
    app = Treadle(database_url)
    server = make_app(app, local=True)
    body = {"type": "code", "spec": {"prompt": "hello"}}
    transport = httpx2.ASGITransport(server)
    async with app, httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.post("/v1/tasks", json=body)).status_code == 201
        with files_run() as found:
            assert (await http.post("/v1/tasks", json=body)).status_code == 201

    assert len(found) <= 12, sorted(found)
    assert found == files_named("Enqueue over HTTP")
