"""The worker checks that an output is of the kind that its task declares."""

from typing import Any

import pytest

from tests.drivers.workers import Conn, row, run_all
from treadle import Context, Treadle

pytestmark = pytest.mark.requirement("F29")

FILE = {"id": "x", "name": "report.pdf", "uri": "file:///report.pdf", "bytes": 3}
ENDED = "select status, failure_class, failure_reason from treadle.tasks where id = %s"


@pytest.mark.parametrize(
    ("output_type", "output"),
    [
        ("code", "print(1)"),
        ("markdown", "# Title"),
        ("json", {"a": 1}),
        ("json", []),
        ("artifact", FILE),
        ("artifact", [FILE, "artifact:0198f3c2-7d1e-7b2a-9c3d-4e5f60718293"]),
    ],
)
async def test_an_output_of_its_kind_completes_the_task(
    app: Treadle, conn: Conn, output_type: Any, output: Any
) -> None:
    @app.task()
    async def write() -> Any:
        return output

    handle = await write.using(output_type=output_type).enqueue()
    await run_all(app)

    assert await handle.result(timeout=5) == output


@pytest.mark.parametrize(
    ("output_type", "output", "words"),
    [
        ("code", {"a": 1}, "an output of type code must be text"),
        ("markdown", " ", "an output of type markdown must be text"),
        ("markdown", None, "an output of type markdown must be text"),
        ("json", '{"a": 1}', "an output of type json must be an object or a list"),
        ("artifact", "report.pdf", "an output of type artifact must be an artifact"),
        ("artifact", [], "an output of type artifact must be an artifact"),
        ("artifact", [FILE, {"id": "y"}], "an output of type artifact must be an artifact"),
    ],
)
async def test_another_kind_of_output_fails_the_attempt(
    app: Treadle, conn: Conn, output_type: Any, output: Any, words: str
) -> None:
    @app.task(max_attempts=1)
    async def write() -> Any:
        return output

    handle = await write.using(output_type=output_type).enqueue()
    await run_all(app)

    status, failure_class, reason = await row(conn, ENDED, handle.id)
    assert (status, failure_class) == ("dead_lettered", "invalid_output")
    assert words in reason


async def test_a_type_declares_the_kind_for_tasks_that_do_not(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1, output_type="json")
    async def write() -> str:
        return "# Title"

    refused = await write.enqueue()
    accepted = await write.using(output_type="markdown").enqueue()
    await run_all(app)

    assert (await row(conn, ENDED, refused.id))[1] == "invalid_output"
    assert await accepted.result(timeout=5) == "# Title"


async def test_the_kind_is_checked_before_the_validators_of_the_type(
    app: Treadle, conn: Conn
) -> None:
    seen: list[Any] = []

    @app.validator("note")
    def note(output: Any, ctx: Context) -> None:
        seen.append(output)

    @app.task(max_attempts=1, validation=[{"validator": "note"}])
    async def write(text: str | None) -> Any:
        return text

    await write.using(output_type="markdown").enqueue(text=None)
    await write.using(output_type="markdown").enqueue(text="# Title")
    await run_all(app)

    assert seen == ["# Title"]
