"""The guards of places between events: each is broken once, and a test must notice."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

places = Killers("events.test_event_place")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a number taken for a place": Mutant(
        "event_cursor",
        {"format('%s.%s', v_event.xid, v_event.id)": "'0.' || p_after"},
        places.test_the_number_of_an_event_leads_to_what_comes_after_it,
    ),
    "the beginning is an event": Mutant(
        "event_cursor",
        {"p_after ~ '^0+$'": "false"},
        places.test_the_number_of_an_event_leads_to_what_comes_after_it,
        psycopg.Error,
    ),
    "a place of another server": Mutant(
        "event_cursor",
        {"> pg_snapshot_xmax(pg_current_snapshot())": "is null"},
        places.test_an_invalid_place_is_rejected,
    ),
    "a place that has just been reached": Mutant(
        "event_cursor",
        {"> pg_snapshot_xmax(pg_current_snapshot())": ">= treadle.stable_xid()"},
        places.test_a_place_is_one_already,
        psycopg.Error,
    ),
    "any text is a place": Mutant(
        "event_cursor",
        {"p_after !~ '^[0-9]{1,19}[.][0-9]{1,18}$'\n    or": "p_after ~ '^[0-9]+[.][0-9]+$' and"},
        places.test_an_invalid_place_is_rejected,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
