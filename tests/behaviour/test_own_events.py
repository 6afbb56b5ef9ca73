"""Kinds of events that treadle writes itself are its own: nobody else can emit them."""

import re
from pathlib import Path

import pytest

from tests.behaviour.driver import Driver
from tests.behaviour.expect import refused, unchanged
from treadle.db.install import files as sql_files

# Texts of this shape that are no kinds: a channel and a table.
NO_KINDS = {"task_ready.", "treadle.tasks"}
# What somebody outside may say: it comes from outside.
FROM_OUTSIDE = {"webhook.received"}
_COMMENT = re.compile(r"--[^\n]*")
_KIND = re.compile(r"'([a-z_]+\.(?:[a-z_]+)?)'")


def own_kinds() -> set[str]:
    """What the functions write as kinds, or begin them with."""
    files = Path(sql_files.sql_dir(), "functions").rglob("*.sql")
    texts = [_COMMENT.sub("", file.read_text()) for file in files]
    found = {kind for text in texts for kind in _KIND.findall(text)}
    return found - NO_KINDS - FROM_OUTSIDE


@pytest.mark.requirement("B10")
def test_no_kind_that_treadle_writes_can_be_emitted(driver: Driver) -> None:
    kinds = own_kinds()

    assert {"token.", "webhook.", "work.", "harness.", "key.limited", "dag.started"} <= kinds
    for kind in sorted(kinds):
        with unchanged(driver), refused("TR001", "only treadle uses"):
            driver.value("select treadle.emit_event(%s)", kind if kind[-1] != "." else f"{kind}x")


def test_a_name_that_only_begins_like_one_of_them_can_be_emitted(driver: Driver) -> None:
    for name in ("tasks.done", "task", "workshop.open", "my.task.done", "webhook.received"):
        assert driver.value("select treadle.emit_event(%s)", name) > 0


CALL = "select treadle.receive_webhook(%s, '1', p_dedup_key => %s)"


@pytest.mark.requirement("F18")
def test_two_senders_and_their_ids_are_never_taken_for_one(driver: Driver) -> None:
    pairs = [("a:b", "c"), ("a", "b:c"), ('a", "b', "c"), ("a", 'b", "c')]

    events = [driver.value(CALL, *pair) for pair in pairs]

    assert len(set(events)) == len(pairs)
    assert [driver.value(CALL, *pair) for pair in pairs] == events
    assert driver.value(CALL, "a", None) != driver.value(CALL, "a", None)


def test_a_long_name_and_a_long_id_are_not_too_long_together(driver: Driver) -> None:
    first = driver.value(CALL, "n" * 200, "i" * 200)

    assert driver.value(CALL, "n" * 200, "i" * 200) == first
    for wrong in ("", "i" * 201):
        with unchanged(driver), refused("TR001", "an id of 1 to 200 bytes"):
            driver.value(CALL, "n", wrong)
