"""`treadle doctor` reports what works, what does not, and what to do about it."""

import os
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_SERVER, Cli, Conn
from tests.drivers.databases import OwnServer
from treadle.db.install.migrate import migrate

CHECKS = [
    "connection", "server", "schema", "functions", "roles", "temporary", "durability", "clock",
    "transactions", "connections", "listen", "agents", "reaper", "promoter", "scheduler", "stuck",
    "vacuum",
]  # fmt: skip


def examine(cli: Cli, *arguments: str) -> dict[str, dict[str, str]]:
    """The checks by name."""
    return {each["check"]: each for each in cli("doctor", "--json", *arguments).json["items"]}


def test_a_sound_server_passes(
    bare: Cli, own_server: OwnServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    url = own_server().url()
    migrate(url)

    done = bare("doctor", "--json", "--database-url", url)

    assert done.code == 0
    assert done.json["ok"] is True
    assert [each["check"] for each in done.json["items"]] == CHECKS
    assert all(each["todo"] for each in done.json["items"] if each["status"] != "ok")


def test_fsync_off_is_a_failure(bare: Cli, own_server: OwnServer) -> None:
    url = own_server(fsync="off", full_page_writes="off").url()

    done = bare("doctor", "--json", "--database-url", url)

    found = {each["check"]: each for each in done.json["items"]}
    assert done.code == 1
    assert found["durability"]["status"] == "fail"
    assert found["durability"]["found"] == "fsync off, full_page_writes off"
    assert found["schema"]["status"] == "fail"
    assert found["schema"]["todo"] == "Create it: treadle db migrate"


def test_a_server_that_does_not_answer_is_exit_code_6(bare: Cli) -> None:
    done = bare("doctor", "--database-url", NO_SERVER)

    assert done.code == 6
    assert done.rows[1][:2] == ["connection", "fail"]
    assert "hunter2" not in done.out + done.err


def test_tasks_that_no_service_moves_are_reported(cli: Cli, sync_conn: Conn) -> None:
    commands.enqueue(sync_conn)
    commands.claim(sync_conn)
    sync_conn.execute("update treadle.tasks set lease_until = clock_timestamp() - interval '1 h'")
    commands.enqueue(sync_conn, delay_s=5)
    sync_conn.execute(
        """
        update treadle.tasks set run_at = clock_timestamp() - interval '1 h'
        where status = 'pending'
        """
    )
    sync_conn.execute("select treadle.pause_queue('default')")
    commands.enqueue(sync_conn)

    found = examine(cli)

    assert found["agents"]["found"] == "1 alive, 1 tasks in progress"
    assert found["reaper"]["status"] == found["promoter"]["status"] == "fail"
    assert found["reaper"]["todo"].endswith("Start a reaper: treadle reaper")
    assert found["stuck"]["status"] == "warn"
    assert "queue default has been paused" in found["stuck"]["found"]


def test_functions_of_another_release_are_reported(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("update treadle.code set checksum = 'other'")

    found = examine(cli)

    assert found["functions"]["status"] == "warn"
    assert "treadle db migrate" in found["functions"]["todo"]


def test_an_old_transaction_is_a_warning(
    cli: Cli, sync_conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.db.install.checks.OLD_TRANSACTION", timedelta(0))
    with sync_conn.transaction():
        sync_conn.execute("select 1")

        found = examine(cli)

    assert found["transactions"]["status"] == "warn"
    assert "pg_stat_activity" in found["transactions"]["todo"]


def test_a_login_without_extra_rights_sees_the_checks_it_may_run(
    cli: Cli, database_url: str, sync_conn: Conn
) -> None:
    worker, stranger = f"worker_{os.getpid()}", f"nobody_{os.getpid()}"
    sync_conn.execute(f"create role {worker} login in role treadle_worker".encode())
    sync_conn.execute(f"create role {stranger} login".encode())
    try:
        urls = [psycopg.conninfo.make_conninfo(database_url, user=u) for u in (worker, stranger)]
        known, unknown = (examine(cli, "--database-url", url) for url in urls)
    finally:
        sync_conn.execute(f"drop role {worker}, {stranger}".encode())

    assert known["roles"]["found"] == "treadle_worker"
    assert known["schema"]["status"] == "ok"
    assert known["agents"]["status"] == "warn"
    assert "treadle_observer" in known["agents"]["todo"]
    assert unknown["roles"]["status"] == "fail"


def test_polling_only_needs_no_echo(cli: Cli) -> None:
    assert examine(cli)["listen"]["found"] == "a notification arrived"
    off = cli("doctor", "--json", env={"TREADLE_NOTIFY": "off"}).json["items"]
    assert {"check": "listen", "status": "ok", "found": "off: workers poll", "todo": None} in off


def test_a_missing_health_file_is_a_failure(bare: Cli) -> None:
    done = bare("doctor", "--health-file", "nothing")

    assert done.code == 1
    assert done.rows[1][:2] == ["health", "fail"]


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(("connections", "status"), [(5, "ok"), (100_000, "warn")])
def test_a_lack_of_connections_is_reported(
    cli: Cli, sync_conn: Conn, connections: int, status: str
) -> None:
    sync_conn.execute(
        """
        select treadle.register_agent('a', p_meta => jsonb_build_object('connections', %s::integer))
        """,
        (connections,),
    )

    found = examine(cli)["connections"]

    assert found["status"] == status
    assert found["found"].startswith(f"1 workers may open {connections}, others have ")
