"""A slow statement of the server is cancelled, and the caller gets Retry-After."""

import httpx2
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Serve
from tests.drivers.http.v1 import code_of, enqueue
from treadle.db.pool import make_pool


@pytest.mark.requirement("B10")
def test_a_statement_that_takes_too_long_is_503_and_changes_nothing(serve: Serve) -> None:
    server = serve(server_statement_timeout_s=2)
    with (
        httpx2.Client(base_url=server.url, timeout=30) as http,
        psycopg.connect(server.database_url) as other,
    ):
        enqueue(http)
        other.execute("lock table treadle.tasks in exclusive mode")

        answer = http.post("/v1/tasks", json={"type": "code"})

        assert code_of(answer) == (503, "unavailable")
        assert answer.headers["retry-after"] == "2"
        assert "did not finish in time" in answer.json()["detail"]
        assert answer.json()["hint"].startswith("Nothing was changed.")
        other.rollback()
        assert len(http.get("/v1/tasks").json()["items"]) == 1


@pytest.mark.parametrize(
    ("prepare", "given", "expected"),
    [(True, "", "30s"), (False, "", "0"), (True, "-c statement_timeout=7s -c jit=off", "7s")],
)
async def test_the_statement_timeout_is_set_without_a_pooler_unless_the_url_has_one(
    new_database: NewDatabase, prepare: bool, given: str, expected: str
) -> None:
    with new_database() as url:
        pool = make_pool(
            make_conninfo(url, options=given),
            size=1,
            prepare=prepare,
            connect_timeout_s=10,
            statement_timeout_s=30,
        )
        async with pool, pool.connection() as conn:
            cursor = await conn.execute("show statement_timeout")
            assert await cursor.fetchone() == (expected,)
