"""Logs are JSON lines: each has a time, a level and an event; those of a task name it."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.processes.children import Conn, Spawn, all_completed, until
from treadle import Treadle


@pytest.mark.requirement("F26")
async def test_every_line_of_a_process_is_json_with_time_level_and_event(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    children = [spawn("worker", agent_id="a"), spawn("reaper"), spawn("promoter")]
    handle = await app.enqueue("stumble")
    await all_completed(conn, 1)
    for child, name in zip(children, ("worker", "reaper", "promoter"), strict=True):
        await child.logged(f"{name}.started")
        child.send(signal.SIGTERM)
        assert await child.exit_code() == 0

    lines = [line for child in children for line in child.lines()]
    ages = [datetime.now(UTC) - datetime.fromisoformat(line["ts"]) for line in lines]
    assert all(timedelta(0) <= age < timedelta(minutes=1) for age in ages)
    assert {line["level"] for line in lines} <= {"debug", "info", "warning", "error"}
    assert {line["event"] for line in lines} >= {
        "worker.started",
        "worker.stopped",
        "reaper.started",
        "promoter.started",
        "tasks.promoted",
    }
    (failed,) = children[0].events("task.failed")
    assert failed["task_id"] == str(handle.id)
    assert failed["type"] == "stumble"
    assert failed["failure_class"] == "error"
    assert failed["error"] == "ValueError: not at first"
    own = children[0].events("task.stumbling")
    assert [(line["task_id"], line["attempt"]) for line in own] == [
        (str(handle.id), 1),
        (str(handle.id), 2),
    ]
    assert own[0]["text"] == "two\nlines and \x1b[31mcolour"


@pytest.mark.requirement("F26")
async def test_what_libraries_log_is_json_as_well(app: Treadle, conn: Conn, spawn: Spawn) -> None:
    worker = spawn("worker")
    await app.enqueue("chatter", {"text": "by the\nstandard module"})
    await all_completed(conn, 1)

    await until(lambda: worker.events("said by the\nstandard module"))
    (line,) = worker.events("said by the\nstandard module")
    assert line["level"] == "warning"
    assert line["logger"] == "somebody.else"
