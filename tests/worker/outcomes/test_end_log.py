"""A worker logs how each attempt ends, and counts them while there are too many."""

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from tests.drivers.workers import run_all, until, working
from treadle import CancelTask, Context, RetryAfter, Treadle
from treadle.logs import configure_logging
from treadle.worker import completer

pytestmark = pytest.mark.requirement("F28")


def ends(logs: list[Any]) -> list[dict[str, Any]]:
    return [each for each in logs if each["event"].startswith(("task.", "tasks."))]


async def test_each_end_is_logged_with_its_task(app: Treadle) -> None:
    @app.task(max_attempts=2)
    async def work(ctx: Context, end: str) -> None:
        if end == "transaction":
            async with ctx.transaction():
                return
        if end == "cancel":
            raise CancelTask("not needed")
        if end == "retry" and ctx.attempt == 1:
            raise RetryAfter(0, "not yet")
        if end == "fail":
            raise ValueError("broken")

    shown = {}
    for end in ("return", "transaction", "cancel", "retry"):
        handle = await work.enqueue(end=end)
        with capture_logs() as logs:
            await run_all(app)
        shown[end] = ends(logs)
        for line in shown[end]:
            assert (line["type"], line["task_id"]) == ("work", str(handle.id))
            assert line["duration_s"] >= 0
    handle = await work.using(max_attempts=1).enqueue(end="fail")
    with capture_logs() as logs:
        await run_all(app)

    def summary(line: dict[str, Any]) -> list[Any]:
        return [line["event"], line["log_level"], line["attempt"], line.get("outcome")]

    assert {end: [summary(line) for line in lines] for end, lines in shown.items()} == {
        "return": [["task.completed", "info", 1, None]],
        "transaction": [["task.completed", "info", 1, None]],
        "cancel": [["task.cancelled", "info", 1, "cancelled"]],
        "retry": [
            ["task.failed", "warning", 1, "ready"],
            ["task.completed", "info", 2, None],
        ],
    }
    [failed] = ends(logs)
    assert summary(failed) == ["task.failed", "error", 1, "dead_lettered"]
    assert (failed["failure_class"], failed["error"]) == ("error", "ValueError: broken")
    assert failed["exception"].startswith("Traceback")
    assert f'File "{__file__}"' in failed["exception"]


async def test_more_than_the_limit_are_counted(
    app: Treadle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer, "MAX_LINES", 5)
    monkeypatch.setattr(completer, "SECOND_S", 3600.0)

    @app.task(max_attempts=1)
    async def work(n: int) -> None:
        if n >= 30:
            raise ValueError(n)

    await work.enqueue_many([{"n": n} for n in range(40)])

    with capture_logs() as logs:
        await run_all(app)

    lines = ends(logs)
    assert len([each for each in lines if each["event"].startswith("task.")]) == 5
    counts = {each["event"]: each["count"] for each in lines if each["event"].startswith("tasks.")}
    assert sum(counts.values()) == 35
    assert all(each["types"] == {"work": each["count"]} for each in lines if "count" in each)


async def test_counts_are_written_when_the_second_is_over(
    app: Treadle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer, "MAX_LINES", 0)
    monkeypatch.setattr(completer, "SECOND_S", 0.1)

    @app.task()
    async def work() -> None: ...

    await work.enqueue()

    with capture_logs() as logs:
        async with working(app):
            await until(lambda: [each for each in logs if each["event"] == "tasks.completed"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def own_logging() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    config = structlog.get_config()
    yield
    structlog.configure(**config)
    logging.getLogger().handlers = handlers


@pytest.mark.usefixtures("own_logging")
@pytest.mark.parametrize(
    ("stream", "start"),
    [
        (io.StringIO(), '{"event": "task.completed", "level": "info", "ts": "'),
        (Terminal(), "\x1b["),
    ],
)
def test_lines_are_coloured_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, start: str
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging()

    structlog.get_logger("x").info("task.completed", type="greet", attempt=1)

    line = stream.getvalue()
    assert line.startswith(start)
    assert line.index("task.completed") < line.index("type") < line.index("attempt")
    assert ("ts=" in line) is False
