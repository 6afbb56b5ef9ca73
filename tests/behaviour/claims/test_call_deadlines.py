"""A call has a deadline: a hanging connection is closed and the call repeated on a new one."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import anyio
import psycopg
import pytest
from structlog.testing import capture_logs

from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.workers import until
from treadle import Treadle, Unavailable
from treadle.db import listener
from treadle.db.calls import Calls
from treadle.db.database import Database
from treadle.db.errors import CallTimeout
from treadle.db.events import Events
from treadle.db.pool import Pool, make_pool
from treadle.models import AgentProfile
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B16")
DEADLINE_S = 1.0


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    """A proxy in front of the database that can stop responding."""
    async with Proxy(database_url) as made:
        yield made


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[Treadle]:
    """An application behind the proxy, with a short deadline."""
    settings = load_settings(
        database_url=proxy.url, notify=False, prepare=False, call_timeout_s=DEADLINE_S
    )
    async with Treadle(settings=settings) as made:
        yield made


def make(url: str, **options: Any) -> Pool:
    """A pool of four; the deadline is short, and idle connections are not checked."""
    given = {"size": 4, "call_timeout_s": DEADLINE_S, "check_after_s": 60.0, **options}
    return make_pool(url, prepare=False, connect_timeout_s=10, **given)


async def use_all(pool: Pool) -> None:
    """Open every connection that the pool may have."""
    async with anyio.create_task_group() as group:
        for _ in range(pool.max_size):
            group.start_soon(_hold, pool)


async def emit(db: Database, event: str) -> None:
    """A call that writes, and that is not repeated when it may have happened."""
    await db.events.emit(event, b"{}", key="", dedup_key=None, actor=None)


async def _hold(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("select pg_sleep(0.2)")


async def test_a_call_on_an_unresponsive_connection_is_repeated_on_a_new_one(proxy: Proxy) -> None:
    async with make(proxy.url) as pool:
        db = Database(Calls(pool))
        version = await db.calls.schema_version()
        proxy.silence()

        with capture_logs() as logs, anyio.fail_after(20):
            assert await db.calls.schema_version() == version

    events = {entry["event"]: entry for entry in logs}
    assert events["connection.timed_out"]["after_s"] == DEADLINE_S
    assert events["connection.timed_out"]["log_level"] == "warning"
    assert events["call.repeated"]["call"] == "schema_version"


async def test_a_claim_has_half_the_time(proxy: Proxy) -> None:
    """An idle worker asks every few seconds, and has to be back before 35 s all the same."""
    async with make(proxy.url) as pool:
        db = Database(Calls(pool))
        await db.agents.register(AgentProfile(id="a"))
        proxy.silence()

        with capture_logs() as logs, anyio.fail_after(20):
            await db.claims.take("a", ["default"], types=None, limit=1, token=uuid4())

    [timed_out] = [each for each in logs if each["event"] == "connection.timed_out"]
    assert timed_out["after_s"] == DEADLINE_S / 2


async def test_the_other_idle_connections_do_not_take_a_deadline_each(proxy: Proxy) -> None:
    async with make(proxy.url, size=6) as pool:
        await use_all(pool)
        proxy.silence()
        db = Database(Calls(pool))

        with capture_logs() as logs, anyio.fail_after(30):
            for _ in range(6):
                await db.calls.schema_version()

    assert [entry["event"] for entry in logs].count("connection.timed_out") == 1


async def test_a_connection_that_was_idle_is_asked_before_it_is_used(proxy: Proxy) -> None:
    async with make(proxy.url, call_timeout_s=300.0, check_after_s=0.0) as pool:
        await use_all(pool)
        proxy.silence()

        with anyio.fail_after(30):
            await Database(Calls(pool)).calls.schema_version()


async def test_a_view_is_read_again(far: Treadle, proxy: Proxy) -> None:
    await far.enqueue("code")
    proxy.silence()

    with anyio.fail_after(20):
        tasks = await far.db.tasks.list()

    assert [task["type"] for task in tasks] == ["code"]


async def test_a_deadline_that_passes_again_and_again_is_an_error(database_url: str) -> None:
    async with make(database_url) as pool:
        db = Database(Calls(pool))
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute("lock table treadle.migrations in access exclusive mode")

            with pytest.raises(Unavailable, match="no response within 1 s") as raised:
                await db.calls.schema_version()

    assert isinstance(raised.value.__cause__, CallTimeout)


async def test_the_server_cancels_statements_without_a_waiting_client(
    database_url: str, conn: psycopg.AsyncConnection[tuple[Any, ...]]
) -> None:
    async with make(database_url, name="treadle-test") as pool:
        with pytest.raises(CallTimeout):
            async with pool.connection() as mine:
                await mine.execute("select pg_sleep(600)")

        cursor = await conn.execute(
            "select count(*) from pg_stat_activity where query like 'select pg_sleep(600)%'"
            " and state = 'active' and application_name = 'treadle-test'"
        )
        assert await cursor.fetchone() == (0,)


async def test_a_task_without_a_key_is_not_enqueued_twice(
    far: Treadle, proxy: Proxy, conn: psycopg.AsyncConnection[tuple[Any, ...]]
) -> None:
    proxy.lose("enqueue_batch", "after")

    with pytest.raises(Unavailable):
        await far.enqueue("code")

    cursor = await conn.execute("select count(*) from treadle.tasks")
    assert await cursor.fetchone() == (1,)


async def test_sessions_that_the_server_ended_fail_no_call(
    database_url: str, conn: psycopg.AsyncConnection[tuple[Any, ...]]
) -> None:
    async with make(database_url, name="treadle-test") as pool:
        await use_all(pool)
        await conn.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where application_name = 'treadle-test'"
        )
        db = Database(Calls(pool))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(emit, db, f"test.{number}")


async def test_a_connection_that_became_read_only_is_dropped(database_url: str) -> None:
    async with make(database_url, size=1) as pool:
        async with pool.connection() as mine:
            pid = mine.info.backend_pid
            await mine.execute("set default_transaction_read_only = on")

        await emit(Database(Calls(pool)), "test")

        async with pool.connection() as mine:
            assert mine.info.backend_pid != pid


@pytest.mark.parametrize("shielded", [False, True])
async def test_a_call_that_is_cancelled_does_not_wait_for_the_server(
    proxy: Proxy, shielded: bool
) -> None:
    # Neither the call nor the end of the pool waits for the deadline of a call.
    with anyio.fail_after(60):
        async with make(proxy.url, call_timeout_s=300.0) as pool:
            db = Database(Calls(pool))
            await db.calls.schema_version()
            proxy.silence()

            with anyio.move_on_after(0.2, shield=shielded) as scope:
                await db.calls.schema_version()

            assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", {"keepalives_idle": "10", "tcp_user_timeout": "25000", "connect_timeout": "10"}),
        ("keepalives_idle=77", {"keepalives_idle": "77", "keepalives_interval": "5"}),
        ("tcp_user_timeout=0", {"tcp_user_timeout": "0", "keepalives_count": "3"}),
        ("connect_timeout=3", {"connect_timeout": "3"}),
        ("target_session_attrs=any", {"target_session_attrs": "any"}),
    ],
)
async def test_connections_detect_a_dead_peer_unless_the_url_disables_it(
    database_url: str, given: str, expected: dict[str, str]
) -> None:
    url = f"{database_url}{'&' if '?' in database_url else '?'}{given}"
    if "://" not in database_url:
        url = f"{database_url} {given}"
    async with make(url) as pool, pool.connection() as conn:
        parameters = {
            each.keyword.decode(): each.val.decode() for each in conn.pgconn.info if each.val
        }

    assert expected.items() <= parameters.items()


async def test_a_listener_reconnects_when_its_connection_stops_responding(
    proxy: Proxy, conn: psycopg.AsyncConnection[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "ECHO_WITHIN_S", 1.0)
    heard: list[str | None] = []
    listening = listener.Listener(proxy.url, ["news"], heard.append, echo_every_s=0.2)

    async with anyio.create_task_group() as group:
        group.start_soon(listening.run)
        await until(lambda: heard == [None])
        proxy.silence()
        await until(lambda: heard == [None, None])
        await conn.execute("notify news")
        await until(lambda: heard == [None, None, "news"])
        group.cancel_scope.cancel()


async def test_a_reader_of_events_notices_an_unresponsive_listening_connection(
    proxy: Proxy, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "ANSWER_S", 1.0)
    monkeypatch.setattr(listener, "LISTEN_S", 0.0)
    async with make(database_url) as pool:
        follower = listener.EventListener(Events(Calls(pool)), proxy.url, None)
        await follower.open()
        proxy.silence()

        with capture_logs() as logs, anyio.fail_after(20):
            await follower.open()
            await follower.open()
        await follower.close()

    assert [entry["event"] for entry in logs].count("events.listen_failed") == 1
