"""Rare options are stored beside the task, and no option is ignored."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.retention import age, keep, prune

REST: dict[str, Any] = {"models": ["large"], "notes": "n", "retry": {"strategy": "fixed"}}


def columns(driver: Driver, table: str) -> set[str]:
    query = """
        select column_name from information_schema.columns
        where table_schema = 'treadle' and table_name = %s
    """
    return {name for (name,) in driver.rows(query, table)}


def with_options(driver: Driver, **options: Any) -> Any:
    return driver.value(
        "select treadle.enqueue_task('default', 'code', '{}', p_options => %s)", Jsonb(options)
    )


def test_the_row_of_a_task_stays_narrow(driver: Driver) -> None:
    assert len(columns(driver, "tasks")) <= 55


def test_every_field_is_a_column_or_maps_to_one(driver: Driver) -> None:
    fields = {name for (name,) in driver.rows("select name from treadle.task_fields")}
    tasks, rest = columns(driver, "tasks"), columns(driver, "task_options")

    assert tasks & rest == set()
    assert fields - tasks - rest == {
        *("urgency", "tier", "delay_s", "project", "concurrency_limit", "dedupe", "hold", "after")
    }
    assert rest - fields == {"task_id", "forked_from"}


def test_a_plain_task_has_its_own_row_and_nothing_else(driver: Driver) -> None:
    driver.enqueue(title="t", priority=3, tags=["x"])
    driver.complete(driver.claim_one(), {"n": 1})

    for table in ("task_options", "results"):
        assert driver.value(f"select count(*) from treadle.{table}") == 0, table
    assert driver.value("select has_options from treadle.tasks") is False


def test_each_task_of_many_has_the_options_of_its_kind(driver: Driver) -> None:
    given = [{"type": "code", "notes": str(n % 2), "priority": n} for n in range(4)]
    plain = [{"type": "code", "priority": 9}]

    made = driver.rows("select id from treadle.enqueue_tasks(%s)", Jsonb([*given, *plain]))

    assert [driver.task(task)["notes"] for (task,) in made] == ["0", "1", "0", "1", None]
    assert [driver.task(task)["has_options"] for (task,) in made] == [*[True] * 4, False]


def test_each_task_of_a_dag_has_its_own_options(driver: Driver) -> None:
    made = driver.rows(
        """
        select unnest(ids) from treadle.create_dag('{"name": "d", "tasks": [
          {"name": "a", "type": "code", "notes": "a"}, {"name": "b", "type": "code"},
          {"name": "c", "type": "code", "notes": "c"}
        ]}')
        """
    )

    assert [driver.task(task)["notes"] for (task,) in made] == ["a", None, "c"]


def test_a_task_that_was_there_already_keeps_its_options(driver: Driver) -> None:
    first = driver.enqueue(key="k", notes="first")

    assert driver.enqueue(key="k", notes="second") == first

    assert driver.rows("select task_id, notes from treadle.task_options") == [(first, "first")]


def test_a_limit_of_the_type_is_kept_with_the_task(driver: Driver) -> None:
    driver.rows("""select treadle.define_type('code', '{"max_tokens": 7}')""")
    [[inserted]] = driver.rows("insert into treadle.tasks (type) values ('code') returning id")
    tasks = [inserted, driver.enqueue()]
    driver.rows("""select treadle.define_type('code', '{"max_tokens": null}')""")

    assert [driver.task(task)["max_tokens"] for task in tasks] == [7, 7]


def test_a_retry_changes_what_is_asked_and_keeps_the_rest(driver: Driver) -> None:
    task = driver.enqueue(**REST)
    driver.fail(driver.claim_one(), action="fail")

    driver.retry(task, "modify_and_retry", {"models": ["small"], "title": "again"})

    found = driver.task(task)
    assert {name: found[name] for name in REST} == {**REST, "models": ["small"]}
    assert found["title"] == "again"


def test_options_that_a_retry_removes_leave_no_row(driver: Driver) -> None:
    task = driver.enqueue(models=["large"])
    driver.fail(driver.claim_one(), action="fail")

    driver.retry(task, "modify_and_retry", {"models": None})

    assert driver.value("select count(*) from treadle.task_options") == 0
    assert driver.task(task)["has_options"] is False


def test_options_go_with_their_task(driver: Driver) -> None:
    keep(driver)
    driver.enqueue(**REST)
    driver.complete(driver.claim_one())
    age(driver)

    assert prune(driver) == 1

    assert driver.value("select count(*) from treadle.task_options") == 0


def test_dedupe_works_as_an_option(driver: Driver) -> None:
    assert with_options(driver, dedupe=True) == with_options(driver, dedupe=True)
    assert with_options(driver, dedupe=False) != with_options(driver, dedupe=False)


def test_a_key_works_as_an_option(driver: Driver) -> None:
    first = with_options(driver, idempotency_key="k")

    assert with_options(driver, idempotency_key="k") == first
    assert driver.task(first)["idempotency_key"] == "k"


def test_a_key_in_the_options_is_for_a_single_task(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "single task"):
        driver.enqueue_batch([{}, {}], idempotency_key="k")
    with unchanged(driver), refused("TR001", "single task"):
        driver.enqueue(key="other", idempotency_key="k")


def test_an_option_of_enqueue_task_is_not_given_as_an_argument_too(driver: Driver) -> None:
    query = "select treadle.enqueue_task('default', 'code', p_priority => 5, p_options => %s)"

    with unchanged(driver), refused("TR001", "priority is given as an argument and as an option"):
        driver.rows(query, Jsonb({"priority": 9}))
    assert driver.task(driver.value(query, Jsonb({"notes": "n"})))["priority"] == 5


@pytest.mark.parametrize("name", ["queue", "type", "spec"])
def test_a_field_with_its_own_argument_is_not_an_option(driver: Driver, name: str) -> None:
    with unchanged(driver), refused("TR001", "separate arguments"):
        with_options(driver, **{name: "code"})


@pytest.mark.parametrize("options", [{"set": {"a": 1}}, {"name": "n"}, {"status": "completed"}])
def test_an_unknown_option_of_a_task_is_rejected(driver: Driver, options: dict[str, Any]) -> None:
    with unchanged(driver), pytest.raises(psycopg.Error, match="unknown option") as raised:
        with_options(driver, **options)

    assert "Options: after, ageing_rate, " in (raised.value.diag.message_hint or "")


@pytest.mark.parametrize("names", [["x", None], [1], ["x" * 201], [""], "x", {"a": 1}])
def test_a_list_of_names_has_names_only(driver: Driver, names: object) -> None:
    with unchanged(driver), refused("TR001", "tags must be a list of up to 50 names"):
        driver.enqueue(tags=names)


def test_a_project_is_named_once(driver: Driver) -> None:
    driver.rows("select treadle.define_project('p')")
    project = driver.value("select id from treadle.projects")

    with unchanged(driver), refused("TR001", "project and project_id cannot be combined"):
        driver.enqueue(project="p", project_id=str(project))


def test_a_key_of_two_hundred_long_letters_gets_its_slot(driver: Driver) -> None:
    task = driver.enqueue(concurrency_key="→" * 200)

    assert driver.claim_one().id == task
