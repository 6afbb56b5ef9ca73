"""Workers may save steps, record spend and artifacts; producers may fork."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.steps import claimed, fork, record_artifact, record_spend, save_step

PUBLIC = {
    "save_step": {"treadle_worker", "treadle_operator"},
    "record_spend": {"treadle_worker", "treadle_operator"},
    "reserve_spend": {"treadle_worker", "treadle_operator"},
    "record_artifact": {"treadle_worker", "treadle_operator"},
    "reserve_artifact": {"treadle_worker", "treadle_operator"},
    "store_artifact": {"treadle_worker", "treadle_operator"},
    "cancel_artifact": {"treadle_worker", "treadle_operator"},
    "read_artifact": {"treadle_producer", "treadle_worker", "treadle_operator"},
    "list_artifacts": {"treadle_producer", "treadle_worker", "treadle_operator"},
    "artifacts_to_delete": {"treadle_worker", "treadle_operator"},
    "remove_deleted_artifacts": {"treadle_worker", "treadle_operator"},
    "unknown_artifacts": {"treadle_worker", "treadle_operator"},
    "artifact_folder": {"treadle_worker", "treadle_operator"},
    "fork_task": {"treadle_producer", "treadle_operator"},
}
INTERNAL = (
    *("add_spend", "check_calls", "check_room", "check_step", "find_step", "edit_spec"),
    *("json_problem", "store_step", "read_steps", "resolve_inputs", "resolve_reference"),
    *(
        "artifact_value",
        "check_artifact",
        "find_artifact",
        "raise_artifact_not_found",
        "tg_tasks__orphan_artifacts",
    ),
)
ROLES = ("treadle_producer", "treadle_worker", "treadle_observer", "treadle_operator")


def who_may(driver: Driver, function: str) -> set[str]:
    """The roles that may call it."""
    rows = driver.rows(
        """
        select roles.name
        from unnest(%s::text[]) as roles (name)
        inner join pg_proc on proname = %s and pronamespace = 'treadle'::regnamespace
        where has_function_privilege(roles.name, pg_proc.oid, 'execute')
        """,
        [*ROLES, "public"],
        function,
    )
    return {name for (name,) in rows}


@pytest.mark.parametrize(("function", "roles"), PUBLIC.items())
def test_a_function_is_granted_to_the_roles_that_need_it(
    driver: Driver, function: str, roles: set[str]
) -> None:
    assert who_may(driver, function) == roles


@pytest.mark.parametrize("function", INTERNAL)
def test_no_role_may_call_an_internal_function(driver: Driver, function: str) -> None:
    exists = "select count(*) from pg_proc where proname = %s"
    assert driver.value(exists, function) == 1
    assert who_may(driver, function) == set()


def test_a_worker_can_do_all_that_a_task_does_and_nothing_with_the_tables(driver: Driver) -> None:
    claim = claimed(driver)
    session = driver.another()
    session.rows("set role treadle_worker")

    save_step(session, claim, calls=[{"usd": 1}])
    record_spend(session, claim, [{"usd": 1}])
    record_artifact(session, claim)
    for table in ("steps", "spend", "artifacts"):
        with refused("42501"):
            session.rows(f"select * from treadle.{table}")


def test_a_producer_can_fork(driver: Driver) -> None:
    claim = claimed(driver)
    save_step(driver, claim)
    session = driver.another()
    session.rows("set role treadle_producer")

    made = fork(session, claim.id, "draft")

    assert driver.state_of(made) == "ready"


@pytest.mark.parametrize("role", ROLES)
def test_observers_and_operators_read_the_steps(driver: Driver, role: str) -> None:
    save_step(driver, claimed(driver))
    session = driver.another()
    session.rows(f"set role {role}")

    if role in ("treadle_observer", "treadle_operator"):
        assert len(session.rows("select * from treadle.task_steps")) == 1
    else:
        with refused("42501"):
            session.rows("select * from treadle.task_steps")
