"""Many at once: an agent has one item in progress, an item has one agent; silence is noticed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx2
import psycopg
import pytest

from tests.drivers.databases import SEEDS, NewDatabase
from tests.drivers.http.servers import Conn, Served, served
from tests.drivers.http.work import Item, add, brought, change, get, listed, refused
from tests.drivers.processes.children import Child, until

MANY = 32
# Not the half hour that it is by default: how long an agent may be silent is a setting.
STALE_S = 600


@pytest.fixture(scope="module")
def server(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of this module with another setting."""
    log = tmp_path_factory.mktemp("server") / "server.log"
    with new_database() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute(SEEDS.encode())
        with served(url, log, work_stale_s=STALE_S) as running:
            yield running


def at_once(server: Served, bodies: list[tuple[str, Item]]) -> list[httpx2.Response]:
    """Send these changes at the same moment, each on a connection of its own."""
    barrier = Barrier(len(bodies))

    def send(item_id: str, body: Item) -> httpx2.Response:
        with httpx2.Client(base_url=server.url, timeout=60) as http:
            http.get("/healthz")
            barrier.wait()
            return http.patch(f"/work/{item_id}", json=body)

    with ThreadPoolExecutor(len(bodies)) as threads:
        return list(threads.map(lambda given: send(*given), bodies))


@pytest.mark.requirement("W7")
def test_an_agent_that_takes_many_items_at_once_has_one(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    items = [brought(http, "dispatched", description=str(n)) for n in range(MANY)]

    answers = at_once(server, [(item["id"], {"status": "in_progress"}) for item in items])

    taken = [answer for answer in answers if answer.status_code == 200]
    assert len(taken) == 1
    [mine] = http.get("/work", params={"agent": "steve-w", "status": "in_progress"}).json()
    assert mine == taken[0].json()
    for answer in answers:
        if answer.status_code != 200:
            problem = refused(answer, 409, "already-taken")
            assert (problem["agent"], problem["in_progress"]) == ("steve-w", mine["id"])
            assert problem["allowed"] == ["cancelled"]
    assert len(listed(http, status="dispatched")) == MANY - 1
    change(http, mine, status="completed", outcome="success")
    other = next(item for item in items if item["id"] != mine["id"])
    assert change(http, other, status="in_progress")["status"] == "in_progress"


@pytest.mark.requirement("W5")
def test_each_of_many_dispatches_at_once_is_answered_with_the_agent_of_its_own(
    server: Served, http: httpx2.Client
) -> None:
    item = add(http)
    agents = [f"agent-{n}" for n in range(12)]

    answers = at_once(
        server,
        [(item["id"], {"status": "dispatched", "assigned_agent": agent}) for agent in agents],
    )

    assert [answer.json()["assigned_agent"] for answer in answers] == agents
    assert get(http, item)["assigned_agent"] in agents


@pytest.mark.requirement("W5", "W7")
def test_an_item_that_many_take_at_once_is_taken_by_one(
    server: Served, http: httpx2.Client
) -> None:
    item = brought(http, "dispatched")

    answers = at_once(server, [(item["id"], {"status": "in_progress"})] * 12)

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 11
    taken = [each for each in get(http, item)["changes"] if each["to_status"] == "in_progress"]
    assert len(taken) == 1


@pytest.mark.requirement("W5")
def test_of_an_end_and_a_cancellation_at_once_one_wins(server: Served, http: httpx2.Client) -> None:
    items = [brought(http, "dispatched", assigned_agent=f"a{n}") for n in range(8)]
    for number, item in enumerate(items):
        change(http, item, assigned_agent=f"a{number}")
    bodies: list[tuple[str, Item]] = []
    for item in items:
        bodies += [(item["id"], {"status": "in_progress"}), (item["id"], {"status": "cancelled"})]

    answers = at_once(server, bodies)

    for number, item in enumerate(items):
        pair = sorted(answer.status_code for answer in answers[2 * number : 2 * number + 2])
        assert pair == [200, 409]
        assert get(http, item)["status"] in ("in_progress", "cancelled")


def age(sql: Conn, item: Item, by: str) -> None:
    """As if all that happened to an item in progress had happened earlier."""
    sql.execute(
        "update treadle.tasks set lease_until = lease_until - %s::interval,"
        " heartbeat_at = heartbeat_at - %s::interval where id = %s",
        (by, by, item["id"]),
    )


@pytest.mark.requirement("W11")
async def test_the_reaper_blocks_an_item_without_updates_and_emits_an_event(
    server: Served, http: httpx2.Client, sql: Conn, tmp_path: Path
) -> None:
    silent = brought(http, "in_progress", description="silent")
    change(http, silent, notes="began")
    other = add(http, description="lively", assigned_agent="maria-k")
    change(http, other, status="dispatched")
    change(http, other, status="in_progress")
    age(sql, silent, "11 minutes")
    age(sql, other, "9 minutes")

    reaper = Child(["reaper"], log=tmp_path / "reaper.log", database_url=server.database_url)
    try:
        await until(lambda: get(http, silent)["status"] == "blocked")
    finally:
        reaper.end()

    found = get(http, silent)
    first, note = found["notes"].splitlines()
    assert first == "began"
    assert "timed out" in note
    assert "steve-w" in note
    assert found["changes"][-1]["note"] == note
    assert found["changes"][-1]["actor"] == "reaper"
    assert get(http, other)["status"] == "in_progress"
    rows = sql.execute(
        "select kind, task_id::text, data ->> 'agent' from treadle.events"
        " where kind = 'work.stalled'"
    ).fetchall()
    assert rows == [("work.stalled", silent["id"], "steve-w")]

    # The item was not final: the agent resumes it, and its only slot was free meanwhile.
    assert change(http, silent, status="in_progress")["status"] == "in_progress"
    assert change(http, silent, status="completed", outcome="success")["outcome"] == "success"


@pytest.mark.requirement("W11")
def test_every_update_renews_the_time_of_an_item(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    item = brought(http, "in_progress")
    age(sql, item, "9 minutes")
    change(http, item, notes="half way")

    (left,) = sql.execute(
        "select lease_until - clock_timestamp() between interval '9 minutes'"
        " and interval '10 minutes' from treadle.tasks"
    ).fetchall()
    assert left == (True,)
