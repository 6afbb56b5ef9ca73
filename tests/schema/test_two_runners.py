"""Two runners at once both succeed, and each migration is applied once."""

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from tests.drivers import runners
from tests.drivers.databases import OwnServer
from treadle.db.install import migrate as steps
from treadle.db.install import schema
from treadle.db.install.migrate import install_script, migrate, migrations
from treadle.errors import Unavailable

EVERYTHING = [*(migration.label for migration in migrations()), "code"]


def outcome(process: subprocess.Popen[str]) -> list[str]:
    """What a runner applied; it must have ended well."""
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return said.split()


def test_three_runners_on_one_database_apply_each_migration_once(empty_database_url: str) -> None:
    with ExitStack() as stack:
        with runners.holding(empty_database_url, "create schema treadle"):
            processes = [stack.enter_context(runners.runner(empty_database_url)) for _ in range(3)]
            runners.await_waiting(empty_database_url, 3)
        outcomes = [outcome(process) for process in processes]

    assert Counter(step for steps in outcomes for step in steps) == Counter(EVERYTHING)
    assert runners.applied(empty_database_url) == list(range(1, runners.LATEST + 1))
    assert runners.described(empty_database_url) == schema.snapshot()


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
    assert {runners.described(url) for url in urls} == {schema.snapshot()}


def test_a_role_granted_by_another_database_at_the_same_moment_is_not_an_error(
    own_server: OwnServer,
) -> None:
    url = own_server(fsync="off").url()
    with psycopg.connect(url) as conn:
        conn.execute("create role treadle_worker; create role treadle_operator")

    grant = "grant treadle_worker to treadle_operator"
    with ThreadPoolExecutor(1) as pool, runners.holding(url, grant) as other:
        run = pool.submit(migrate, url, lock_timeout_s=1)
        runners.await_waiting(url, 1)
        other.commit()
        result = run.result(timeout=30)

    assert result.version == runners.LATEST


def test_three_runners_on_one_database_upgrade_it_once(empty_database_url: str) -> None:
    migrate(empty_database_url, to=1)
    with ExitStack() as stack:
        with runners.holding(empty_database_url, steps.LOCK):
            processes = [stack.enter_context(runners.runner(empty_database_url)) for _ in range(3)]
            runners.await_waiting(empty_database_url, 3)
        outcomes = [outcome(process) for process in processes]

    assert Counter(step for steps in outcomes for step in steps) == Counter(EVERYTHING[1:])
    assert runners.described(empty_database_url) == schema.snapshot()


def test_a_runner_waits_for_an_install_and_then_has_nothing_to_do(
    empty_database_url: str,
) -> None:
    script = install_script()
    assert script.endswith("commit;\n")
    with (
        ThreadPoolExecutor(1) as pool,
        runners.holding(empty_database_url, script.removesuffix("commit;\n")) as install,
    ):
        run = pool.submit(migrate, empty_database_url, lock_timeout_s=30)
        runners.await_waiting(empty_database_url, 1)
        install.commit()
        result = run.result(timeout=60)

    assert not result.changed
    assert runners.described(empty_database_url) == schema.snapshot()


def test_a_runner_does_not_wait_for_ever_for_another_and_names_it(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_database_url, to=1)
    monkeypatch.setattr(steps, "RUNNER_WAIT_S", 0.1)

    with runners.holding(empty_database_url, steps.LOCK) as other:
        with pytest.raises(Unavailable, match="another migration") as raised:
            migrate(empty_database_url)
        holder = f"process {other.info.backend_pid} of "

    assert holder in (raised.value.hint or "")


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("begun", [False, True])
def test_an_outsider_cannot_stop_a_runner(
    empty_database_url: str, template: str, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """Neither by the advisory lock that earlier versions used nor by a lock on the table."""
    monkeypatch.setattr(steps, "RUNNER_WAIT_S", 1)
    if begun:
        migrate(empty_database_url, to=1)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        name = f"{conn.info.dbname}_outsider"
        conn.execute(f"create role {name} login".encode())
        try:
            conn.execute(f"set session authorization {name}".encode())
            conn.execute("select pg_advisory_lock(hashtextextended('treadle.migrate', 0))")
            if begun:
                with pytest.raises(psycopg.errors.InsufficientPrivilege), conn.transaction():
                    conn.execute(steps.LOCK.encode())

            result = migrate(empty_database_url)
        finally:
            conn.execute("reset session authorization")
            conn.execute(f"drop role {name}".encode())

    assert result.version == runners.LATEST
