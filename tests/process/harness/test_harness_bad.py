"""Invalid or numerous tasks do not stop the loops of a harness."""

from functools import partial
from uuid import uuid4

import pytest

from tests.drivers.processes import children
from tests.drivers.processes.children import rows, value
from tests.drivers.processes.harness import Site

until = partial(children.until, within=40)


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("output", [None, "7", '["list"]'])
async def test_an_output_that_is_not_a_decision_fails_and_the_others_are_processed(
    site: Site, output: str | None
) -> None:
    token = uuid4()
    bad = str(
        await value(site.conn, "select id from treadle.enqueue_harness_task('http://a', '{}')")
    )
    await rows(site.conn, "select treadle.claim_harness_task('http://a', %s)", token)
    complete = "select treadle.complete_task(%s, %s, %s::jsonb)"
    await rows(site.conn, complete, bad, token, output)
    good = await site.decided(2)

    child = site.harness("--drain-every", "0.2", "--tries", "1")

    await until(site.all_are("done", "done", good))
    await until(site.all_are("completed", "failed", [bad]))
    assert sorted(site.done()) == sorted(good), "the callback never sees it"
    line = await child.logged("harness.action_failed", task_id=bad)
    assert "the decision must be an object" in line["error"]
    await rows(site.conn, "select treadle.skip_action(%s)", bad)
    assert (await site.states())[bad] == ("done", "skipped")


@pytest.mark.requirement("H7")
async def test_more_silent_claims_than_one_batch_are_requeued_at_once(site: Site) -> None:
    many = 1_100
    store = "select treadle.enqueue_harness_task('http://a', '{}') from generate_series(1, %s)"
    await rows(site.conn, store, many)
    claim = """
        select treadle.claim_harness_task('http://a', gen_random_uuid()) from generate_series(1, %s)
    """
    await rows(site.conn, claim, many)
    await site.age_claims()
    claimed = "select count(*) from treadle.harness_tasks where status = 'claimed'"
    assert await value(site.conn, claimed) == many

    child = site.harness("--drain-every", "600", "--requeue-every", "600")

    async def none_is_claimed() -> bool:
        return bool(await value(site.conn, claimed) == 0)

    await until(none_is_claimed)
    await until(lambda: len(child.events("harness.requeued")) == many)


@pytest.mark.requirement("H6")
async def test_a_callback_that_takes_longer_than_its_lease_keeps_it(site: Site) -> None:
    [held] = await site.decided(how="hold")
    short = "tests.drivers.apps.harness_short_leases:act"
    first, second = (site.harness("--drain-every", "0.2", act=short) for _ in range(2))
    await until(lambda: site.done() == [held])
    lease = "select lease_until from treadle.harness_actions"
    began = await value(site.conn, lease)

    async def is_past_its_first_lease() -> bool:
        return bool(await value(site.conn, "select now() > %s + interval '1 second'", began))

    await until(is_past_its_first_lease)
    assert (await site.states())[held] == ("completed", "executing")
    with site.effects.open("a") as file:
        file.write("go on\n")

    await until(site.all_are("done", "done", [held]))
    assert site.done() == [held, "go on", f"held {held}"]
    for each in (first, second):
        assert each.events("harness.interrupted") == []
        assert each.events("harness.lease_lost") == []
