"""Acknowledged writes are durable, whatever synchronous_commit the client has set."""

from collections.abc import Callable

import pytest

from tests.drivers.engine import Driver
from treadle.models import Claim

SETTING = "select current_setting('synchronous_commit')"
Call = Callable[[Driver, Claim], object]

CALLS: dict[str, Call] = {
    "enqueue_task": lambda driver, _: driver.rows("select treadle.enqueue_task('default', 'code')"),
    "enqueue_tasks": lambda driver, _: driver.rows(
        'select * from treadle.enqueue_tasks(\'[{"type": "code"}]\')'
    ),
    "enqueue_batch": lambda driver, _: driver.enqueue_batch([{}]),
    "claim_tasks": lambda driver, _: driver.claim("b"),
    "complete_tasks": lambda driver, claim: driver.complete(claim),
    "complete_task": lambda driver, claim: driver.rows(
        "select treadle.complete_task(%s, %s)", claim.id, claim.token
    ),
    "fail_tasks": lambda driver, claim: driver.fail(claim),
    "fail_task": lambda driver, claim: driver.rows(
        "select treadle.fail_task(%s, %s)", claim.id, claim.token
    ),
    "release_tasks": lambda driver, claim: driver.release(claim),
    "cancel_tasks": lambda driver, claim: driver.cancel(claim.id),
    "set_priority": lambda driver, claim: driver.rows(
        "select * from treadle.set_priority(%s, 5)", [claim.id]
    ),
    "release_held_tasks": lambda driver, claim: driver.rows(
        "select * from treadle.release_held_tasks(%s)", [claim.id]
    ),
}


def after(driver: Driver, call: Call, claim: Claim, setting: str) -> str:
    """What the commit of a transaction with this call goes by, for a client with this setting."""
    driver.rows(f"set synchronous_commit = {setting}")
    driver.rows("begin")
    assert driver.value(SETTING) == setting
    call(driver, claim)
    found = str(driver.value(SETTING))
    driver.rows("commit")
    assert driver.value(SETTING) == setting, "the session keeps what the client chose"
    return found


@pytest.mark.parametrize("setting", ["off", "local"])
@pytest.mark.parametrize("name", CALLS)
def test_a_client_with_less_than_synchronous_commit_still_commits_for_good(
    driver: Driver, name: str, setting: str
) -> None:
    driver.enqueue_batch([{}] * 2)
    claim = driver.claim_one("a")

    assert after(driver, CALLS[name], claim, setting) == "on"


def test_a_decision_of_an_operator_commits_to_disk(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim)

    assert after(driver, lambda session, claim: session.retry(claim.id), claim, "off") == "on"


def test_results_that_were_taken_are_committed_to_disk(driver: Driver) -> None:
    driver.enqueue(consumer="me")
    claim = driver.claim_one("a")
    driver.complete(claim)

    def take(session: Driver, _: Claim) -> object:
        return session.rows("select * from treadle.take_results('me')")

    assert after(driver, take, claim, "off") == "on"


@pytest.mark.parametrize("setting", ["remote_write", "remote_apply", "on"])
def test_a_client_that_asks_for_another_kind_of_durability_keeps_it(
    driver: Driver, setting: str
) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert after(driver, CALLS["complete_tasks"], claim, setting) == setting


def test_heartbeats_need_no_flush_of_their_own(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert after(driver, lambda session, claim: session.heartbeat(claim), claim, "off") == "off"
