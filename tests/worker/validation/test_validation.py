"""An output is accepted by its validators, which may pass, reject, hang or crash."""

import random
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import pytest

from tests.drivers.workers import Conn, row, run_all, status, until, working
from treadle import Context, Task, Treadle

pytestmark = pytest.mark.requirement("F20")

ENDED = """
    select status, failure_class, failure_reason, output
    from treadle.tasks where id = %s
"""
FEEDBACK = "select feedback from treadle.attempts where task_id = %s"
# Definitions that refer to each other twice: thirty lines that take a year to check.
TWICE: dict[str, Any] = {
    f"d{n}": {"anyOf": [{"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for _ in range(2)]}
    for n in range(40)
}
ENDLESS: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {**TWICE, "d40": {"type": "integer"}},
}
NOISE = "".join(random.Random(1).choices("ab", k=200_000))
PROGRAM = """
import json, sys
given = json.load(sys.stdin)
print("looked at", given["task"]["spec"]["value"])
sys.exit(0 if given["output"] == "good" else 3)
"""
# The settings that make each validator pass, reject and hang.
CASES: dict[str, dict[str, tuple[Mapping[str, Any], Any]]] = {
    "json_schema": {
        "passes": ({"schema": {"type": "object", "required": ["a"]}}, {"a": 1}),
        "refuses": ({"schema": {"type": "object", "required": ["a"]}}, {"b": 1}),
        "hangs": ({"schema": ENDLESS}, "no integer"),
    },
    "regex": {
        "passes": ({"pattern": "^PR-[0-9]+$"}, "PR-17"),
        "refuses": ({"pattern": "^PR-[0-9]+$"}, "I made a PR"),
        # The engine is linear in the text, times the size of the pattern: seconds for this one.
        "hangs": ({"pattern": "[ab]*a[ab]{1000}c"}, NOISE),
    },
    "test_pass": {
        "passes": ({"name": "unit"}, "good"),
        "refuses": ({"name": "unit"}, "bad"),
        "hangs": ({"name": "stuck"}, "good"),
    },
    "llm_judge": {
        "passes": ({"criteria": "good"}, "good"),
        "refuses": ({"criteria": "good"}, "bad"),
        "hangs": ({"criteria": "hang"}, "good"),
    },
    "plain": {
        "passes": ({"wanted": "good"}, "good"),
        "refuses": ({"wanted": "good"}, "bad"),
        "hangs": ({"wanted": "hang"}, "good"),
    },
}
MESSAGES = {
    "json_schema": ['json_schema: output: "a" is a required property'],
    "regex": ['regex: output: "I made a PR" does not match "^PR-[0-9]+$"'],
    "test_pass": [
        "test_pass unit: unit ended with exit code 3",
        "test_pass unit: looked at bad",
    ],
    "llm_judge": ["llm_judge: it is not good"],
    "plain": ["plain: rejected by plain"],
}


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Ends what hangs in threads when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def give(app: Treadle, over: threading.Event) -> Task:
    """A handler that returns its argument, in an application with validators."""

    @app.task(max_attempts=1)
    async def echo(value: Any) -> Any:
        return value

    @app.validator("llm_judge")
    async def judge(output: str, criteria: str, ctx: Context) -> str | None:
        assert ctx.task.type == "echo"
        if criteria == "hang":
            await anyio.sleep_forever()
        return None if output == criteria else f"it is not {criteria}"

    @app.validator("plain")
    def compare(output: str, wanted: str) -> bool:
        if wanted == "hang":
            over.wait(30)
        return output == wanted

    app.command("unit", [sys.executable, "-c", PROGRAM])
    app.command("stuck", [sys.executable, "-c", "import time; time.sleep(60)"])
    return echo


def checked(validator: str, settings: Mapping[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"validator": validator, **settings, **more}]


@pytest.mark.parametrize("validator", CASES)
async def test_a_validator_that_is_content_completes_the_task(
    app: Treadle, conn: Conn, give: Task, validator: str
) -> None:
    settings, value = CASES[validator]["passes"]
    handle = await give.using(validation=checked(validator, settings)).enqueue(value=value)

    await run_all(app)

    assert await row(conn, ENDED, handle.id) == ("completed", None, None, value)


@pytest.mark.parametrize("validator", CASES)
async def test_a_validator_that_refuses_fails_the_attempt_with_its_messages(
    app: Treadle, conn: Conn, give: Task, validator: str
) -> None:
    settings, value = CASES[validator]["refuses"]
    handle = await give.using(validation=checked(validator, settings)).enqueue(value=value)

    await run_all(app)

    assert await row(conn, FEEDBACK, handle.id) == (MESSAGES[validator],)
    first = MESSAGES[validator][0]
    ended = await row(conn, ENDED, handle.id)
    assert ended == ("dead_lettered", "invalid_output", first, None)


@pytest.mark.parametrize("validator", CASES)
async def test_a_validator_that_hangs_is_cut_off_while_the_worker_works_on(
    app: Treadle, conn: Conn, give: Task, validator: str
) -> None:
    settings, value = CASES[validator]["hangs"]
    hung = await give.using(validation=checked(validator, settings, timeout_s=0.5)).enqueue(
        value=value
    )
    other = await give.using(priority=90).enqueue(value=1)

    async with working(app, slots=2):
        # It does not wait for the validator that hangs.
        assert await other.result(timeout=30) == 1
        await until(lambda: _is(conn, hung.id, "dead_lettered"), within=30)

    kind, reason = (await row(conn, ENDED, hung.id))[1:3]
    assert kind == "timeout"
    assert "took longer than 0.5 s" in reason


@pytest.mark.parametrize("how", ["async", "in_a_thread", "exits", "wrong_answer", "no_program"])
async def test_a_validator_that_crashes_fails_the_attempt_and_not_the_worker(
    app: Treadle, conn: Conn, give: Task, how: str
) -> None:
    @app.validator("async")
    async def fall(output: Any) -> None:
        raise ZeroDivisionError("no judgement")

    @app.validator("in_a_thread")
    def stumble(output: Any) -> None:
        raise ZeroDivisionError("no judgement")

    @app.validator("exits")
    def leave(output: Any) -> None:
        sys.exit("no judgement")

    @app.validator("wrong_answer")
    def confuse(output: Any) -> Any:
        return {"verdict": "no judgement"}

    app.command("no_program", ["/no/such/program"])
    settings = {"validator": how}
    if how == "no_program":
        settings = {"validator": "test_pass", "name": how}
    crashed = await give.using(validation=[settings]).enqueue(value=1)
    fine = await give.using(priority=90).enqueue(value=2)

    await run_all(app, slots=1)

    assert await row(conn, ENDED, fine.id) == ("completed", None, None, 2)
    ended, kind, reason, _ = await row(conn, ENDED, crashed.id)
    assert (ended, kind) == ("dead_lettered", "error")
    assert reason.startswith("validator ")
    assert " crashed: " in reason


async def _is(conn: Conn, task_id: Any, wanted: str) -> bool:
    return await status(conn, task_id) == wanted


def test_catastrophic_patterns_are_harmless() -> None:
    from treadle.worker.validation import schema_check

    check = schema_check({"type": "string", "pattern": "^(a+)+$"})

    # An engine that backtracks would not be done in a lifetime.
    messages = anyio.run(check.messages, b'"' + b"a" * 5000 + b'!"')

    assert len(messages) == 1
