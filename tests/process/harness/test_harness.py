"""No task is lost and no action executed twice, whichever process is killed."""

from functools import partial

import anyio
import pytest

from tests.drivers.processes import children
from tests.drivers.processes.children import rows
from tests.drivers.processes.harness import QUICK, Site
from tests.drivers.processes.postgres_proxy import Proxy

# A process takes its time to start where many do.
until = partial(children.until, within=40)


@pytest.mark.requirement("H8")
async def test_no_task_is_lost_when_the_agent_is_killed_and_started_again(site: Site) -> None:
    harness = site.harness("--drain-every", "600", "--requeue-every", "0.2")
    await harness.logged("harness.started", within=40)
    await site.allow()
    hold = site.folder / "go on"
    agent = site.agent()
    first = await site.put()
    await until(site.all_are("done", "done", [first]))

    # Right after the enqueue: it may have heard the nudge, or not.
    tasks = [first, await site.put()]
    agent.kill()
    # Down when it is nudged.
    tasks += [await site.put(hold=str(hold)), *[await site.put() for _ in range(3)]]
    await harness.logged("harness.nudge_failed", within=40, agent_url=site.agent_url)
    await site.age_claims()
    agent = site.agent()
    # Killed with a claim.
    claimed = "select from treadle.harness_tasks where status = 'claimed' and payload ? 'hold'"
    await until(lambda: rows(site.conn, claimed))
    agent.kill()
    await site.age_claims()
    await harness.logged("harness.requeued", within=40, task_id=tasks[2])
    hold.touch()
    site.agent()

    await until(site.all_are("done", "done", tasks))
    assert sorted(site.done()) == sorted(tasks)
    retried = "select retry_count from treadle.harness_tasks where task_id = %s"
    assert await rows(site.conn, retried, tasks[2]) == [(1,)]


@pytest.mark.requirement("H6")
async def test_a_killed_harness_acts_once_and_marks_the_open_action_as_interrupted(
    site: Site,
) -> None:
    [bad] = await site.decided(how="die")
    first = site.harness("--drain-every", "0.2", "--slots", "1")
    assert await first.exit_code(within=40) != 0
    assert site.done() == [bad]
    good = await site.decided(3)

    second = site.harness()
    await until(site.all_are("done", "done", good))
    assert (await site.states())[bad] == ("completed", "executing"), "its lease lasts"
    await site.age_actions()
    await second.logged("harness.interrupted", within=40, task_id=bad)

    await until(site.all_are("completed", "interrupted", [bad]))
    assert sorted(site.done()) == sorted([bad, *good])
    with site.effects.open("a") as file:
        file.write("again\n")
    await rows(site.conn, "select treadle.rerun_action(%s)", bad)
    await until(site.all_are("done", "done", [bad]))
    assert site.done().count(bad) == 2


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("marked", ["by an option", "on the function"])
async def test_a_killed_harness_calls_a_callback_again_that_is_safe_to_repeat(
    site: Site, marked: str
) -> None:
    [bad] = await site.decided(how="die")
    arguments = [*QUICK, "--redeliver"] if marked == "by an option" else QUICK
    act = "act" if marked == "by an option" else "act_again"
    first = site.harness(*arguments, act=f"tests.drivers.apps.harness:{act}")
    assert await first.exit_code(within=40) != 0

    second = site.harness(*arguments, act=f"tests.drivers.apps.harness:{act}")
    await second.logged("harness.started", within=40)
    await site.age_actions()

    await second.logged("harness.redelivered", within=40, task_id=bad)
    await until(site.all_are("done", "done", [bad]))
    assert site.done() == [bad, bad]


@pytest.mark.requirement("H5")
async def test_a_nudge_from_an_agent_drains_at_once(site: Site) -> None:
    harness = site.harness("--drain-every", "600", "--requeue-every", "600")
    await harness.logged("harness.started", within=40)
    task = await site.put()

    # It looks when it starts, and nudges the harness when it has decided.
    site.agent()

    await until(site.all_are("done", "done", [task]))


@pytest.mark.requirement("H6")
async def test_a_nudge_that_never_comes_is_made_up_for(site: Site) -> None:
    harness = site.harness("--drain-every", "0.2", notify=False)
    await harness.logged("harness.started", within=40)

    tasks = await site.decided(2)

    await until(site.all_are("done", "done", tasks))
    assert sorted(site.done()) == sorted(tasks)


@pytest.mark.requirement("H6")
async def test_two_harnesses_execute_each_action_once(site: Site) -> None:
    pair = [site.harness(), site.harness(act="tests.drivers.apps.harness:act_async")]
    for each in pair:
        await each.logged("harness.started", within=40)

    tasks = [task for _ in range(8) for task in await site.decided(5)]

    await until(site.all_are("done", "done", tasks))
    with anyio.fail_after(40):
        # One of them may have had no turn yet.
        while not all(each.events("harness.done") for each in pair):
            tasks += await site.decided(5)
            await until(site.all_are("done", "done", tasks))
    assert sorted(site.done()) == sorted(tasks)


@pytest.mark.requirement("H6")
async def test_a_callback_that_raises_is_recorded_and_does_not_stop_the_others(site: Site) -> None:
    raising, leaving = await site.decided(how="raise"), await site.decided(how="exit")
    good = await site.decided(3)
    child = site.harness(*("--drain-every", "0.1"), "--tries", "2")

    await until(site.all_are("done", "done", good))
    bad = raising + leaving
    await until(site.all_are("completed", "waiting", bad))
    await site.age_actions()
    await until(site.all_are("completed", "failed", bad))

    assert [site.done().count(each) for each in bad] == [2, 2]
    errors = "select action_error from treadle.harness_tasks where task_id = any (%s::uuid[])"
    said = sorted(row[0].split("\n")[0] for row in await rows(site.conn, errors, bad))
    assert said == ["RuntimeError: no such label", "SystemExit: 3"]
    # It writes its log after the row.
    await until(lambda: len(child.events("harness.action_failed")) == 2)
    assert child.running


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("lost", ["take_actions", "finish_action"])
async def test_an_answer_of_the_database_that_is_lost_neither_loses_nor_doubles_an_action(
    site: Site, database_url: str, lost: str
) -> None:
    tasks = await site.decided(3)
    async with Proxy(database_url) as proxy:
        proxy.lose(lost)
        words = ("--drain-every", "0.2", "--slots", "1")
        child = site.harness(*words, database_url=proxy.url, prepare=False)

        await until(site.all_are("done", "done", tasks))
        assert len(proxy.lost) == 1
        child.kill()

    assert sorted(site.done()) == sorted(tasks)
