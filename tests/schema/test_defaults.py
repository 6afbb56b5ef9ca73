"""Defaults that SQL and Python both have are the same."""

from typing import Any

import psycopg

from treadle.settings import CLAIM_TTL_S, HEARTBEAT_S


def test_an_agent_that_registers_with_sql_has_the_lease_of_the_settings(
    sync_conn: psycopg.Connection[tuple[Any, ...]],
) -> None:
    sync_conn.execute("select treadle.register_agent('a')")
    sync_conn.execute("insert into treadle.agents (id, registered_at) values ('b', now())")

    leases = sync_conn.execute(
        "select heartbeat_s, claim_ttl_s from treadle.agents where id in ('a', 'b')"
    ).fetchall()

    assert leases == [(HEARTBEAT_S, CLAIM_TTL_S)] * 2
