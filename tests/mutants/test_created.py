"""Each report that an object is new, broken on purpose, is noticed by a test."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

created = Killers("engine.test_created")

pytestmark = pytest.mark.mutant


def again(noun: str, function: str, changes: dict[str, str]) -> Mutant:
    """A definition that takes an object for new which one session has defined before."""
    return Mutant(
        function,
        changes,
        lambda driver: created.test_only_the_first_definition_creates(driver, noun),
    )


def at_once(noun: str, function: str, changes: dict[str, str]) -> Mutant:
    """A definition that takes an object for new which another session defines at the same time."""
    return Mutant(
        function,
        changes,
        lambda driver: created.test_of_two_definitions_at_once_one_creates(
            driver, noun, "commit", False
        ),
    )


MUTANTS = {
    "a changed queue is new": again(
        "queue", "define_queue", {"return v_made;": "return v_made or v_new <> v_old;"}
    ),
    "a changed type is new": again(
        "type", "store_type", {"return v_made;": "return v_made or v_new <> v_old;"}
    ),
    "a changed gate is new": again(
        "gate", "define_gate", {"return v_made;": "return v_made or v_new.key is not null;"}
    ),
    "a known project is new": again(
        "project", "define_project", {"created := found;": "created := true;"}
    ),
    "a changed schedule is new": again(
        "schedule",
        "define_schedule",
        {"case when v_made then 'created'": "case when true then 'created'"},
    ),
    "a trigger that was not seen is new": at_once(
        "trigger", "define_trigger", {"returning triggers.xmax = 0": "returning v_old.id is null"}
    ),
    "an unchanged trigger is neither": again(
        "trigger", "define_trigger", {"created := coalesce(created, false);": ""}
    ),
    "a webhook that was not seen is new": at_once(
        "webhook",
        "define_webhook",
        {"  secret :=": "  created := v_old is null;\n  secret :="},
    ),
    "a known webhook is new": again(
        "webhook", "store_webhook", {"returning stored.xmax = 0": "returning true"}
    ),
    "a known push agent is new": again(
        "push agent", "define_push_agent", {"returning push_agents.xmax = 0": "returning true"}
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
