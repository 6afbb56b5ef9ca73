"""While the database does not answer, health files say so and SIGTERM ends every process."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic_core import from_json

from tests.process.proxy import Proxy
from tests.process.support import Child, Spawn, until
from treadle.errors import TreadleError
from treadle.health import read_health_file

pytestmark = pytest.mark.requirement("B16")
# Each is woken often enough to be in a call when it is told to end.
SETTINGS = {"notify": "false", "drain_s": 1, "service_s": 0.2, "prune_every_s": 0.2, "poll_s": 0.2}
SERVICES = ["reaper", "promoter", "scheduler", "notifier", "dispatcher", "pruner"]


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    """A way to the database that can fall silent."""
    async with Proxy(database_url) as made:
        yield made


def start(spawn: Spawn, proxy: Proxy, kind: str, *arguments: str, **settings: object) -> Child:
    """A process behind the proxy."""
    if kind == "server":
        arguments = ("--port", "0", *arguments)
    return spawn(kind, *arguments, database_url=proxy.url, **{**SETTINGS, **settings})


async def test_sigterm_ends_every_process_whose_calls_are_not_answered(
    spawn: Spawn, database_url: str
) -> None:
    """Each has a proxy of its own, which tells when a call of it is not answered."""
    async with AsyncExitStack() as stack:
        proxies = {
            kind: await stack.enter_async_context(Proxy(database_url))
            for kind in ("worker", *SERVICES, "server")
        }
        children = {kind: start(spawn, proxy, kind) for kind, proxy in proxies.items()}
        for kind, child in children.items():
            await child.logged(f"{kind}.started")
        for proxy in proxies.values():
            proxy.silence(new=True)
        for kind in ("worker", *SERVICES):
            await until(lambda kind=kind: proxies[kind].swallowed > 0)

        for child in children.values():
            child.send(signal.SIGTERM)

        # Far below the deadline of a call, which is 30 s here.
        codes = {kind: await child.exit_code(within=25) for kind, child in children.items()}
    assert codes == dict.fromkeys(children, 0)
    assert [kind for kind in children if children[kind].events("process.exit_forced")] == []


@pytest.mark.parametrize("kind", ["worker", "reaper", "pruner"])
async def test_the_health_file_turns_bad_after_three_heartbeats_and_good_again(
    spawn: Spawn, proxy: Proxy, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "health"
    settings = {"heartbeat_s": 0.5, "call_timeout_s": 1, "prune_every_s": 3600}
    start(spawn, proxy, kind, "--health-file", str(file), **settings)
    await until(file.exists)
    facts = read_health_file(file, max_age_s=60)
    proxy.silence(new=True)

    await until(lambda: b"no_database" in file.read_bytes(), within=90)

    with pytest.raises(TreadleError, match="no database"):
        read_health_file(file, max_age_s=60)
    assert from_json(file.read_bytes())["last_contact_at"] > facts["last_contact_at"] - 1
    proxy.speak()
    await until(lambda: from_json(file.read_bytes())["status"] == "ok", within=90)
