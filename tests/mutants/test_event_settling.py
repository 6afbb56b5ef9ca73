"""The guards of readers of events: each is broken once, and a test must notice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

settling = Killers("events.test_event_settling")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "every database is another": Mutant(
        "stable_xid",
        {"databases.datname = current_database()": "databases.datname = 'postgres'"},
        settling.test_a_transaction_of_this_database_is_waited_for_whatever_it_wrote,
    ),
    "all that holds a lock is elsewhere": Mutant(
        "stable_xid",
        {"beside.database <> 0": "true", "beside.database <> (": "0 <> ("},
        settling.test_a_transaction_of_this_database_is_waited_for_whatever_it_wrote,
    ),
    "a writer with a number is in another database": Mutant(
        "stable_xid",
        {
            "and beside.database <> 0": "",
            "beside.database <> (": "beside.database is distinct from (",
        },
        settling.test_one_that_wrote_nothing_yet_is_waited_for_wherever_it_is,
    ),
    "a lock of anybody": Mutant(
        "stable_xid",
        {"held.virtualtransaction = beside.virtualtransaction": "held.pid is not null"},
        settling.test_one_of_another_database_does_not_hide_one_of_this,
    ),
    "a session that waits for the writer": Mutant(
        "stable_xid",
        {"and held.mode = 'ExclusiveLock'": ""},
        settling.test_a_session_that_waits_for_a_transaction_is_not_mistaken_for_it,
    ),
    "whole servers are waited for": Mutant(
        "stable_xid",
        {"held.mode = 'ExclusiveLock'": "false"},
        settling.test_a_transaction_of_another_database_does_not_delay_readers,
    ),
    "past its own transaction": Mutant(
        "stable_xid",
        {"pg_current_xact_id_if_assigned()": "null"},
        settling.test_a_reader_does_not_pass_its_own_transaction,
    ),
    "a start before the last read event": Mutant(
        "read_events",
        {"treadle.stable_xid()": "pg_snapshot_xmin(pg_current_snapshot())"},
        settling.test_a_transaction_of_another_database_does_not_delay_readers,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
