"""A runner that is killed at any time leaves a database that the next run completes."""

import itertools
import signal
from collections.abc import Callable

import psycopg
import pytest

from tests.drivers import runners
from treadle.db.install import schema
from treadle.db.install.migrate import migrate, status
from treadle.errors import Unavailable


@pytest.mark.parametrize(
    ("first", "blocker"),
    [
        pytest.param(None, "create schema treadle", id="in the first migration"),
        pytest.param(1, "lock treadle.code in share mode", id="in a later migration"),
        pytest.param(runners.LATEST, "lock treadle.code in share mode", id="in the code"),
    ],
)
def test_a_runner_killed_in_the_middle_is_made_good_by_the_next(
    first: int | None, blocker: str, empty_database_url: str
) -> None:
    if first is not None:
        migrate(empty_database_url, to=first)
        if first == runners.LATEST:
            with psycopg.connect(empty_database_url) as conn:
                conn.execute("delete from treadle.code")

    with (
        runners.holding(empty_database_url, blocker),
        runners.runner(empty_database_url) as process,
    ):
        runners.await_waiting(empty_database_url, 1)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL

    assert status(empty_database_url).version == first
    result = migrate(empty_database_url)
    assert (result.version, result.code_applied) == (runners.LATEST, True)
    assert runners.described(empty_database_url) == schema.snapshot()


def cut(url: str, *, at: int) -> Callable[[str], None]:
    """A listener to the steps of a run that ends its connection in the step with this number."""
    steps = itertools.count(1)

    def listen(_: str) -> None:
        if next(steps) == at:
            with psycopg.connect(url, autocommit=True) as conn:
                conn.execute(
                    """
                    select pg_terminate_backend(pid, 5000) from pg_stat_activity
                    where datname = current_database() and application_name = 'treadle db'
                    """
                )

    return listen


def test_a_connection_lost_in_any_step_is_an_error_and_the_next_run_continues(
    empty_database_url: str,
) -> None:
    with pytest.raises(Unavailable) as raised:
        migrate(empty_database_url, on_step=cut(empty_database_url, at=1))
    assert raised.value.hint is not None
    assert status(empty_database_url).version is None

    # Each run gets one step further than the one before; the last to be lost is in the code.
    for version in range(1, runners.LATEST + 1):
        with pytest.raises(Unavailable):
            migrate(empty_database_url, on_step=cut(empty_database_url, at=2))
        assert status(empty_database_url).version == version

    assert migrate(empty_database_url).code_applied
    assert runners.described(empty_database_url) == schema.snapshot()
