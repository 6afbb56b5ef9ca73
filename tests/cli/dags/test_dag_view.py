"""The view of a DAG fits its terminal, and shows less detail for large DAGs."""

from decimal import Decimal
from typing import Any

import pytest

from treadle.cli.dags.view import DagView, money
from treadle.cli.output import STATES


def task(name: str, *after: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    """A row of dag_tasks."""
    ended = status in ("completed", "dead_lettered", "cancelled")
    return {
        "id": name, "name": name, "title": None, "type": "code", "status": status, "attempt": 1,
        "max_attempts": 3, "wait_s": Decimal("61.5"), "run_s": Decimal(3) if ended else None,
        "claimed_at": ended or None, "completed_at": ended or None, "cost_usd": Decimal("0.25"),
        "failure_reason": None,
        "depends_on": [
            {"id": each, "name": each, "optional": False, "met": False} for each in after
        ],
        **more,
    }  # fmt: skip


def shown(tasks: list[dict[str, Any]], *, width: int = 80, unicode: bool = True) -> list[str]:
    """The lines for a DAG of these tasks."""
    counts = {state: sum(each["status"] == state for each in tasks) for state in STATES}
    dag = {
        **counts, "id": "0" * 36, "name": "x" * 200, "status": "running", "tasks": len(tasks),
        "duration_s": Decimal("3725.1"), "cost_usd": Decimal("1.5"), "budget_usd": Decimal(5),
        "open_waits": 2,
    }  # fmt: skip
    lines = DagView(width=width, unicode=unicode).lines(dag, tasks)
    return "\n".join(line.plain for line in lines).split("\n")


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [50, 80, 200])
@pytest.mark.parametrize("count", [1, 5, 60, 300])
def test_no_line_is_wider_than_the_terminal(count: int, width: int, unicode: bool) -> None:
    long = "an-exceedingly-long-name-for-a-task-of-a-dag-that-nobody-would-ever-choose"
    tasks = [
        task(f"{long}-{number}", *([f"{long}-{number // 2}"] if number else []))
        for number in range(count)
    ]

    lines = shown(tasks, width=width, unicode=unicode)

    assert max(map(len, lines)) <= width
    assert unicode or all(line.isascii() for line in lines)


def test_the_head_shows_progress_cost_and_open_waits() -> None:
    _, bar, about, *_, hint = shown([task("a"), task("b", "a", status="blocked")])

    assert bar == "██████████░░░░░░░░░░  1 of 2 completed, 1 blocked"
    assert about.endswith("1h 2m · $1.50 of $5.00 · 2 open waits")
    assert hint == "answer its questions: treadle waits"


def test_columns_stand_below_each_other() -> None:
    lines = shown([task("a"), task("b", "a", status="retrying", attempt=2), task("日本", "a")])

    assert lines[4:8] == [
        "task      state         waited   ran   cost",
        "✓ a       completed      1m 1s  3.0s  $0.25",
        "├─↻ b     retrying 2/3   1m 1s        $0.25",
        "╰─✓ 日本  completed      1m 1s  3.0s  $0.25",
    ]


def test_the_problems_of_a_dag_are_listed() -> None:
    dead = [task(f"t{n}", status="dead_lettered", failure_reason="one\ntwo") for n in range(7)]
    outside = task("late", "elsewhere", status="pending")

    lines = shown([outside, *dead])

    assert "✕ late depends on a task outside this DAG" in lines
    assert "✕ t0 is a dead letter: two" in lines
    assert "  and 3 more" in lines


def test_a_picture_that_would_be_too_wide_becomes_a_list_by_level() -> None:
    # Each waits for a different pair: no two lines can be joined.
    firsts = [task(f"a{number}") for number in range(40)]
    pairs = [(n, m) for n in range(40) for m in range(n)][::7]
    seconds = [task(f"b{n}-{m}", f"a{n}", f"a{m}", "a39") for n, m in pairs]

    lines = shown([*firsts, *seconds])

    assert "level 1" in lines
    assert "    after a7, a0, a39" in lines
    assert max(map(len, lines)) <= 80


def test_over_two_hundred_are_counted_by_level() -> None:
    tasks = [task("root"), *(task(f"t{n}", "root", status="ready") for n in range(250))]

    lines = shown(tasks)

    assert lines[4] == "level 1    ██████████  1 of 1"
    assert lines[5] == "level 2    ░░░░░░░░░░  0 of 250, 250 ready"
    assert len(lines) < 10


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "$0.00"), (1.5, "$1.50"), (0.0012, "$0.0012"), (1234, "$1234.00")]
)
def test_money_has_the_digits_that_matter(amount: float, words: str) -> None:
    assert money(amount) == words
