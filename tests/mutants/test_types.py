"""Each guard of the settings of types, broken on purpose, is noticed by a test."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import FAILED, Killers, Mutant

settings = Killers("types.test_declared_settings")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "a setting that stays for ever": Mutant(
        "store_type",
        {"where gone.name <> all (v_keys)": "where false"},
        lambda driver: settings.test_a_setting_removed_from_the_code_returns_to_its_default(
            driver, "max_attempts"
        ),
    ),
    "an operator who owns nothing": Mutant(
        "store_type",
        {"where kept.name <> all (v_keys)": "where true"},
        settings.test_an_operator_takes_a_setting_over_until_code_declares_it_again,
    ),
    "a null that is declared": Mutant(
        "store_type",
        {"where each.value <> 'null'": "where true"},
        settings.test_a_declared_null_is_not_a_declaration,
        (*FAILED, psycopg.DatabaseError),
    ),
    "a row read without its lock": Mutant(
        "store_type",
        {"      for no key update;\n": "      ;\n"},
        settings.test_a_declaration_keeps_what_an_operator_changes_at_the_same_time,
    ),
    "a write each time": Mutant(
        "store_type",
        {
            "if v_new is distinct from v_old then\n    --": "if true then\n    --",
        },
        settings.test_declaring_the_same_again_writes_nothing,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
