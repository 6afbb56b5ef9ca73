"""Kinds of events that treadle writes itself are reserved: no caller can emit them."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.events import own_kinds
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("B10")
def test_no_kind_that_treadle_writes_can_be_emitted(driver: Driver) -> None:
    kinds = own_kinds()

    assert {"token.", "webhook.", "work.", "harness.", "key.limited", "dag.started"} <= kinds
    for kind in sorted(kinds):
        with unchanged(driver), refused("TR001", "is reserved for built-in events"):
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
        with unchanged(driver), refused("TR001", "id must be 1 to 200 bytes"):
            driver.value(CALL, "n", wrong)
