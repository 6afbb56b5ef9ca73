"""Writes in the transaction that completes a task happen exactly once, also when it is repeated."""

from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from treadle import Treadle
from treadle.errors import ClaimLost
from treadle.models import Claim


@pytest.fixture
def effects(fresh: Driver) -> Driver:
    """A database with a table for the caller's own writes."""
    fresh.rows("create table public.effects (task_id uuid)")
    return fresh


def written(driver: Driver) -> list[UUID]:
    """For which tasks something was written."""
    return [row[0] for row in driver.rows("select task_id from public.effects")]


def claimed(driver: Driver) -> Claim:
    driver.enqueue(retry={"strategy": "immediate"})
    return driver.claim_one("a")


async def complete(driver: Driver, claim: Claim) -> None:
    """Write and complete in one transaction, as a handler does."""
    async with (
        Treadle(driver.url) as app,
        app.db.claims.completing(claim.id, claim.token, lambda: b"null") as conn,
    ):
        await conn.execute("insert into public.effects values (%s)", (claim.id,))


async def test_a_repeat_after_a_lost_answer_writes_nothing_more(effects: Driver) -> None:
    claim = claimed(effects)

    await complete(effects, claim)
    await complete(effects, claim)

    assert written(effects) == [claim.id]
    assert effects.state_of(claim.id) == "completed"


async def test_a_superseded_claim_writes_nothing(effects: Driver) -> None:
    first = claimed(effects)
    effects.expire(first)
    second = effects.claim_one("b")

    with pytest.raises(ClaimLost):
        await complete(effects, first)
    assert written(effects) == []

    await complete(effects, second)
    assert written(effects) == [first.id]


@pytest.mark.parametrize("end", ["cancelled", "dead_lettered"])
async def test_a_task_that_has_ended_otherwise_gets_no_writes(effects: Driver, end: str) -> None:
    claim = claimed(effects)
    if end == "cancelled":
        effects.cancel(claim.id)
    else:
        effects.fail(claim, action="fail")
    assert effects.state_of(claim.id) == end

    with pytest.raises(ClaimLost):
        await complete(effects, claim)
    assert written(effects) == []


def test_in_plain_sql_the_error_undoes_the_callers_writes(effects: Driver) -> None:
    first = claimed(effects)
    effects.expire(first)
    effects.claim_one("b")

    with refused("TR101"), effects.conn.transaction():
        effects.rows("insert into public.effects values (%s)", first.id)
        effects.rows("select treadle.complete_task(%s, %s)", first.id, first.token)

    assert written(effects) == []
