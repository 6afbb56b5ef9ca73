"""The engine does not name the queues of protocols: it reads properties of the queue."""

import re
from pathlib import Path

import pytest

from tests.drivers import tree

PROTOCOLS = ("work", "push", "harness")
# The one place that says which queues the protocols use.
NAMES = "protocol_queues"
# The scopes of a token are words of their own: one of them is called work.
SCOPES = "array['read', 'enqueue', 'work', 'operate', 'admin']"
LITERAL = re.compile(r"'\{?(work|push|harness)\}?'")


def named(text: str) -> list[str]:
    """The protocol queues that a SQL text names outside its comments."""
    return LITERAL.findall(re.sub(r"--[^\n]*", "", text).replace(SCOPES, ""))


def engine() -> list[Path]:
    """The functions and views that belong to no protocol."""
    functions = [path for path in tree.functions() if path.parent.name not in PROTOCOLS]
    views = [
        path
        for path in sorted((tree.ROOT / "sql" / "views").glob("*.sql"))
        if path.stem.split("_")[0] not in PROTOCOLS and path.stem != NAMES
    ]
    assert len(functions) > 100
    assert len(views) > 20
    return [*functions, *views, *sorted((tree.ROOT / "sql" / "triggers").glob("*.sql"))]


def test_the_engine_names_no_queue_of_a_protocol() -> None:
    found = {tree.name(path): named(path.read_text()) for path in engine()}

    wrong = {name: queues for name, queues in found.items() if queues}
    assert wrong == {}, f"ask for a property of the queue, see {NAMES}.sql"


@pytest.mark.parametrize(
    "text", ["tasks.queue = 'work'", "lane.queue <> all ('{harness}')", "  -- it's\n'push'"]
)
def test_a_name_is_found(text: str) -> None:
    assert len(named(text)) == 1


@pytest.mark.parametrize("text", ["-- queue 'work'", "reason = 'work_stale'", f"x <@ {SCOPES}"])
def test_other_words_are_not_names(text: str) -> None:
    assert named(text) == []


def test_each_protocol_is_named_where_the_engine_looks() -> None:
    text = (tree.ROOT / "sql" / "views" / f"{NAMES}.sql").read_text()

    assert sorted(named(text)) == sorted(PROTOCOLS)
