"""SIGTERM ends every process, also while the database does not respond."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.drivers.processes.children import Child, Spawn, until
from tests.drivers.processes.postgres_proxy import Proxy

pytestmark = pytest.mark.requirement("B16")
# Each is woken often enough to be in a call when it is stopped.
SETTINGS = {"notify": "false", "drain_s": 1, "service_s": 0.2, "prune_every_s": 0.2, "poll_s": 0.2}
SERVICES = ["reaper", "promoter", "scheduler", "notifier", "dispatcher", "pruner"]


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    """A proxy in front of the database that can stop responding."""
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
