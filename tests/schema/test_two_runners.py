"""Two runners at once both succeed, and each migration is applied once."""

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from tests.conftest import OwnServer
from tests.schema import tools
from treadle.db import runner as steps
from treadle.db import schema
from treadle.db.install import LOCK
from treadle.db.migrate import migrate, migrations
from treadle.errors import Unavailable

EVERYTHING = [*(migration.label for migration in migrations()), "code"]


def outcome(process: subprocess.Popen[str]) -> list[str]:
    """What a runner applied; it must have ended well."""
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return said.split()


def test_three_runners_on_one_database_apply_each_migration_once(empty_database_url: str) -> None:
    with ExitStack() as stack:
        with tools.holding(empty_database_url, f"select {LOCK}"):
            processes = [stack.enter_context(tools.runner(empty_database_url)) for _ in range(3)]
            tools.await_waiting(empty_database_url, 3)
        outcomes = [outcome(process) for process in processes]

    assert Counter(step for steps in outcomes for step in steps) == Counter(EVERYTHING)
    assert tools.applied(empty_database_url) == list(range(1, tools.LATEST + 1))
    assert tools.described(empty_database_url) == schema.snapshot()


def test_runners_on_two_databases_of_a_new_server_share_the_making_of_the_roles(
    own_server: OwnServer,
) -> None:
    server = own_server(fsync="off")
    with psycopg.connect(server.url(), autocommit=True) as conn:
        for name in ("one", "two", "three", "four"):
            conn.execute(f"create database {name}".encode())

    with ThreadPoolExecutor(4) as pool:
        urls = [server.url(name) for name in ("one", "two", "three", "four")]
        results = list(pool.map(migrate, urls))

    assert [[*result.applied, "code"] for result in results] == [EVERYTHING] * 4
    assert {tools.described(url) for url in urls} == {schema.snapshot()}


def test_a_role_granted_by_another_database_at_the_same_moment_is_no_error(
    own_server: OwnServer,
) -> None:
    url = own_server(fsync="off").url()
    with psycopg.connect(url) as conn:
        conn.execute("create role treadle_worker; create role treadle_operator")

    grant = "grant treadle_worker to treadle_operator"
    with ThreadPoolExecutor(1) as pool, tools.holding(url, grant) as other:
        run = pool.submit(migrate, url, lock_timeout_s=1)
        tools.await_waiting(url, 1)
        other.commit()
        result = run.result(timeout=30)

    assert result.version == tools.LATEST


def test_a_runner_does_not_wait_for_ever_for_another(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "RUNNER_WAIT_S", 0.1)

    with (
        tools.holding(empty_database_url, f"select {LOCK}"),
        pytest.raises(Unavailable, match="another migration"),
    ):
        migrate(empty_database_url)
