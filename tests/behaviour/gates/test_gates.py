"""Gates: closed and opened by operators, named by tasks."""

from datetime import timedelta

import pytest

from tests.drivers.engine import Driver
from tests.drivers.gates import behind, define_gate, events, gate, limited
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("R6")


def test_an_operator_closes_and_opens_a_gate(driver: Driver) -> None:
    driver.enqueue()
    until = driver.value("select treadle.close_gate('type:code', 60, 'moving', 'ann')")
    assert until == gate(driver, "type:code")["closed_until"]
    assert driver.claim("a") == []

    assert driver.value("select treadle.open_gate('type:code', 'ann')") is True
    assert driver.value("select treadle.open_gate('type:code', 'ann')") is False
    assert len(driver.claim("a")) == 1
    assert [each["actor"] for each in events(driver, "gate.closed")] == ["ann"]
    assert [each["actor"] for each in events(driver, "gate.opened")] == ["ann"]


def test_opening_a_gate_readies_the_tasks_that_a_rate_limit_delayed(driver: Driver) -> None:
    claim = behind(driver, "llm")
    limited(driver, claim, retry_after=3600)
    driver.rows("select treadle.open_gate('llm')")

    assert [each.id for each in driver.promote()] == [claim.id]
    assert len(driver.claim("a", 5)) == 2


@pytest.mark.parametrize("call", ["close_gate(%s, 60)", "open_gate(%s)"])
@pytest.mark.parametrize("key", ["lmm", "type:cod", "over:1:llm", None])
def test_an_unknown_gate_is_rejected_and_the_known_ones_are_named(
    driver: Driver, call: str, key: str | None
) -> None:
    define_gate(driver, "llm")
    with unchanged(driver), refused("TR209", "there is no gate(.|\n)*Known gates: llm"):
        driver.rows(f"select treadle.{call}", key)


def test_a_task_cannot_name_an_unknown_gate(driver: Driver) -> None:
    define_gate(driver, "llm")
    with unchanged(driver), refused("TR209", "there is no gate 'lmm'(.|\n)*Known gates: llm"):
        driver.enqueue(gates=["llm", "lmm"])
    with unchanged(driver), refused("TR001", "gates must be a list of up to 10"):
        driver.enqueue(gates=["llm"] * 11)


@pytest.mark.parametrize(
    "given", ["0", "-5", "'NaN'", "'Infinity'", "null", "5, p_until => 'infinity'"]
)
def test_a_gate_is_not_closed_for_a_time_that_makes_no_sense(driver: Driver, given: str) -> None:
    define_gate(driver, "llm")
    with unchanged(driver), refused("TR001", "cannot be closed for that time"):
        driver.rows(f"select treadle.close_gate('llm', {given})")


@pytest.mark.parametrize("until", [-timedelta(seconds=1), timedelta(days=4000)])
def test_a_gate_is_closed_until_a_moment_to_come(driver: Driver, until: timedelta) -> None:
    define_gate(driver, "llm")
    with unchanged(driver), refused("TR001", "cannot be closed for that time"):
        driver.rows("select treadle.close_gate('llm', p_until => clock_timestamp() + %s)", until)
