"""A harness that stops lets callbacks finish, and marks the others as interrupted."""

import signal
from functools import partial

import pytest

from tests.drivers.processes import children
from tests.drivers.processes.children import ROOT, rows
from tests.drivers.processes.harness import QUICK, Site
from treadle.cli.worker import load_function
from treadle.errors import ConfigurationError

until = partial(children.until, within=40)


async def test_sigterm_waits_for_the_callback_and_takes_nothing_more(site: Site) -> None:
    [held] = await site.decided(how="hold")
    child = site.harness("--drain-every", "0.1", "--slots", "1", drain_s=30)
    await until(lambda: site.done() == [held])
    child.send(signal.SIGTERM)
    await child.logged("harness.stopping", within=40)
    await site.decided()

    with site.effects.open("a") as file:
        file.write("go on\n")

    assert await child.exit_code(within=40) == 0
    assert site.done() == [held, "go on", f"held {held}"]
    assert (await site.states())[held] == ("done", "done")


@pytest.mark.parametrize("act", ["act", "act_async"])
async def test_a_callback_that_runs_too_long_is_interrupted(site: Site, act: str) -> None:
    [held] = await site.decided(how="hold")
    child = site.harness(act=f"tests.drivers.apps.harness:{act}", drain_s=0.2)
    await until(lambda: site.done() == [held])

    child.send(signal.SIGTERM)

    assert await child.exit_code(within=40) == 0
    assert (await site.states())[held] == ("completed", "interrupted")
    error = "select action_error from treadle.harness_tasks"
    assert "was stopped before the callback ended" in (await rows(site.conn, error))[0][0]
    again = site.harness()
    await again.logged("harness.started", within=40)
    [other] = await site.decided()
    await until(site.all_are("done", "done", [other]))
    assert site.done() == [held, other], "not executed again"


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("act", ["act", "act_async"])
async def test_a_callback_that_is_cancelled_by_itself_has_failed(site: Site, act: str) -> None:
    [bad] = await site.decided(how="cancel")
    child = site.harness(*QUICK, "--tries", "1", act=f"tests.drivers.apps.harness:{act}")
    await until(site.all_are("completed", "failed", [bad]))

    [good] = await site.decided()
    await until(site.all_are("done", "done", [good]))

    error = "select action_error from treadle.harness_tasks where task_id = %s"
    assert (await rows(site.conn, error, bad))[0][0].startswith("CancelledError")
    assert child.running


@pytest.mark.requirement("H7")
@pytest.mark.requirement("H11")
async def test_every_transition_is_one_line_of_the_log(site: Site) -> None:
    harness = site.harness()
    await harness.logged("harness.started", within=40)
    good, bad = await site.put(), await site.put(url="http://elsewhere:9000")
    site.agent()
    await until(site.all_are("done", "done", [good]))
    claim = "select id from treadle.claim_harness_task('http://elsewhere:9000', gen_random_uuid())"
    for _ in range(4):
        await until(lambda: rows(site.conn, claim))
        await site.age_claims()
    await until(site.all_are("failed", None, [bad]))

    for child, event, task in (
        (site.server.child, "enqueued", good),
        (site.server.child, "claimed", good),
        (site.server.child, "completed", good),
        (harness, "executing", good),
        (harness, "done", good),
        (harness, "requeued", bad),
        (harness, "failed", bad),
    ):
        await child.logged(f"harness.{event}", task_id=task)
    assert len(harness.events("harness.requeued", task_id=bad)) == 3


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("tests.drivers.apps.harness", "does not name a function"),
        ("tests.drivers.apps.harness:acct", "has no 'acct'"),
        ("tests.drivers.apps.harness:os", "is not a function"),
        ("tests.process.nowhere:act", "no module"),
        ("harness_app.py:act", "is not the name of a module"),
    ],
)
def test_a_callback_that_is_none_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, path: str, word: str
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigurationError, match=word):
        load_function(path)
