"""An archived task is complete: every column, and everything that belonged to it."""

from typing import Any
from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.retention import (
    age,
    archived,
    complete_full_task,
    complete_one,
    exists,
    keep,
    prune,
)
from tests.drivers.steps import claimed, record_artifact

# Tables with rows of a task, how they name it, and what they are called in the history.
PARTS = {
    "attempts": "attempts",
    "steps": "steps",
    "waits": "waits",
    "dead_letters": "dead_letters",
    "spend": "spend",
    "artifacts": "artifacts",
    "events": "events",
}
# Rows that are part of the task itself in the history.
FIELDS = {"task_options", "results", "attempt_notes"}
# Rows that go by themselves, or never: money that is counted, the history, what people decided.
NOT_PARTS = {
    "reservations",
    "dead_letter_decisions",
    "schedule_runs",
    "trigger_fires",
    "dispatches",
    "harness_actions",
    "harness_nudges",
    "work_log",
}

# Secrets of workers and consumers.
TOKENS = ("claim_token", "last_token")


def rows_of(driver: Driver, task: UUID) -> dict[str, list[Any]]:
    found = {}
    for table in PARTS:
        query = f"""
            select to_jsonb(t) - 'task_id' - 'claim_token'
            from treadle.{table} as t where task_id = %s
        """
        found[table] = sorted((row[0] for row in driver.rows(query, task)), key=str)
    return found


@pytest.mark.requirement("B9")
def test_every_column_but_the_tokens_and_every_part_can_be_read_back(driver: Driver) -> None:
    keep(driver)
    task = complete_full_task(driver)
    [(before, options)] = driver.rows(
        """
        select to_jsonb(tasks), to_jsonb(task_options)
        from treadle.tasks inner join treadle.task_options on id = task_id
        where id = %s
        """,
        task,
    )
    [(shown,)] = driver.rows(
        "select to_jsonb(d) from treadle.task_details as d where id = %s", task
    )
    parts = rows_of(driver, task)
    assert all(parts.values()), "the task has something in each"
    age(driver)

    assert prune(driver) == 1

    for table in FIELDS:
        assert driver.value(f"select count(*) from treadle.{table}") == 0, table
    query = """
        select
          to_jsonb(jsonb_populate_record(null::treadle.tasks, task)),
          to_jsonb(jsonb_populate_record(null::treadle.task_options, task)), task
        from treadle.archived_tasks where id = %s
    """
    for name in TOKENS:
        before[name] = None
    [(row, rest, whole)] = driver.rows(query, task)
    assert (row, rest) == (before, {**options, "task_id": None})
    for name in ("attempt_notes", "decision_report", "input_tokens"):
        assert whole[name] == shown[name], name
    found = archived(driver, task)
    assert found is not None
    [answer] = found["waits"][0].pop("answers")
    assert (answer["actor"], answer["value"]) == ("ann", True)
    for table, name in PARTS.items():
        assert sorted(found[name], key=str) == parts[table], table


def test_an_empty_value_inside_any_document_is_kept(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    task = complete_one(driver)
    columns = driver.rows(
        """
        select column_name from information_schema.columns
        where table_schema = 'treadle' and table_name = 'tasks' and data_type = 'jsonb'
        """
    )
    names = [name for (name,) in columns]
    given = ", ".join(f"""{name} = '{{"a": null, "b": [null]}}'""" for name in names)
    driver.rows(f"update treadle.tasks set {given} where id = %s", task)

    assert prune(driver) == 1

    found = archived(driver, task)
    assert found is not None
    kept = {name: found["task"].get(name) for name in names}
    assert kept == {name: {"a": None, "b": [None]} for name in names}


@pytest.mark.requirement("B9")
def test_nothing_of_a_task_is_left_but_the_decisions_about_it(driver: Driver) -> None:
    keep(driver)
    task = complete_full_task(driver)
    age(driver)

    prune(driver)

    assert not any(rows_of(driver, task).values())
    assert driver.rows("select * from treadle.answers") == []
    decisions = "select count(*) from treadle.dead_letter_decisions where task_id = %s"
    assert driver.value(decisions, task) == 1


def test_every_table_with_rows_of_a_task_is_covered_here(driver: Driver) -> None:
    tables = driver.rows(
        """
        select columns.table_name
        from information_schema.columns
        inner join pg_tables
          on columns.table_name = pg_tables.tablename and pg_tables.schemaname = 'treadle'
        where columns.table_schema = 'treadle' and columns.column_name = 'task_id'
        """
    )

    assert {name for (name,) in tables} - NOT_PARTS - FIELDS - {"dependencies"} == set(PARTS)


def test_a_file_in_the_store_is_doomed_and_not_forgotten(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    claim = claimed(driver)
    linked = record_artifact(driver, claim)
    driver.rows(
        """
        insert into treadle.artifacts
          (task_id, claim_token, name, uri, status, key, bytes, sha256, stored_at)
        values (%s, %s, 'kept.bin', 'store:kept', 'stored', 'kept', 1, 'ab', now())
        """,
        claim.id,
        claim.token,
    )
    driver.complete(claim)

    assert prune(driver) == 1

    assert driver.rows("select name, status from treadle.artifacts") == [("kept.bin", "doomed")]
    found = archived(driver, claim.id)
    assert found is not None
    assert linked in {UUID(file["id"]) for file in found["artifacts"]}


def test_a_queue_that_drops_keeps_nothing(driver: Driver) -> None:
    task = complete_full_task(driver)
    keep(driver, keep_completed_s=0, prune_mode="drop")
    age(driver)

    assert prune(driver) == 1

    assert not exists(driver, task)
    assert driver.rows("select * from treadle.task_history") == []
    assert not any(rows_of(driver, task).values())


def test_the_same_id_may_be_archived_twice(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    task = complete_one(driver)
    prune(driver)
    driver.rows("insert into treadle.tasks (id, type) values (%s, 'code')", task)
    driver.complete(driver.claim_one())

    assert prune(driver) == 1

    query = "select count(*) from treadle.task_history where id = %s"
    assert driver.value(query, task) == 2


def test_unrelated_rows_do_not_change(driver: Driver) -> None:
    keep(driver, keep_completed_s=86400)
    old = complete_one(driver)
    other = complete_full_task(driver)
    aged = "update treadle.tasks set completed_at = '2000-01-01' where id = %s"
    driver.rows(aged, old)
    before, parts = driver.task(other), rows_of(driver, other)

    assert prune(driver) == 1

    assert driver.task(other) == before
    assert rows_of(driver, other) == parts


def test_json_that_looks_like_a_command_is_only_text(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    spec = {"$where": "'; drop table treadle.tasks; --", "\u202e": "\\u0000", "": [[]]}
    task = complete_one(driver, spec, spec=spec)

    assert prune(driver) == 1

    found = archived(driver, task)
    assert found is not None
    assert found["task"]["spec"] == spec
    assert found["task"]["output"] == spec
