"""SQL accepts the fields of a task as listed in treadle.fields, with the same bounds."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.drivers.fields import (
    BOUNDED,
    CHANGES,
    EXAMPLES,
    FIELDS,
    SEEDS,
    allowed,
    beside,
    cases,
    label,
    refused,
    usable,
)
from treadle.fields import (
    FLAGS,
    BreakerSettings,
    Field,
    RetryPolicy,
    TypeSettings,
    detail_fields,
    editable_fields,
    engine_fields,
    fields_of,
    uses_of,
)

Conn = psycopg.Connection[tuple[Any, ...]]
SHOWN = [field for field in FIELDS if not field.has("hidden")]
COMPLETED = """
    insert into treadle.tasks (type, status, completed_at)
    values ('code', 'completed', now()) returning id
"""
# About one run of a task, so that a fork has its own.
OF_ONE_RUN = {"run_at", "created_by", "idempotency_key"}


@pytest.fixture(scope="module")
def seeded(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[Conn]:
    with new_database() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute(SEEDS.encode())
        for agent in ("a", "b"):
            conn.execute(
                "select treadle.register_agent(%s, p_capabilities => %s, p_queues => %s)",
                (agent, ["git", "gpu"], ["default", "q"]),
            )
        yield conn


@pytest.fixture
def conn(seeded: Conn) -> Iterator[Conn]:
    """A connection whose changes are undone."""
    with seeded.transaction(force_rollback=True):
        yield seeded


def enqueue(conn: Conn, **options: Any) -> UUID:
    task = {"type": "code", **options}
    task_id: UUID = one(conn, "select id from treadle.enqueue_tasks(%s)", Jsonb([task]))
    return task_id


def create_dag(conn: Conn, **options: Any) -> UUID:
    dag = {"name": "d", "tasks": [{"type": "code", "name": "n", **options}]}
    task_id: UUID = one(conn, "select ids[1] from treadle.create_dag(%s)", Jsonb(dag))
    return task_id


def set_type(conn: Conn, **settings: Any) -> None:
    one(conn, "select treadle.define_type('code', %s)", Jsonb(settings))


def set_queue(conn: Conn, **settings: Any) -> None:
    one(conn, "select treadle.define_queue('default', %s)", Jsonb(settings))


SETTERS: dict[str, Callable[..., object]] = {
    "queue": set_queue,
    "type": set_type,
    "node": create_dag,
}


def one(conn: Conn, query: str, *parameters: object) -> Any:
    row = conn.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def details(conn: Conn, task_id: UUID) -> dict[str, Any]:
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from treadle.task_details where id = %s", (task_id,))
        [row] = cursor.fetchall()
        return row


def examples(conn: Conn, use: str) -> dict[str, Any]:
    """A value for every shown field that can be set there."""
    made = {
        "project_id": str(one(conn, "select id from treadle.projects where name = 'p'")),
        "parent_id": str(enqueue(conn)),
        "inputs": {"given": f"task:{one(conn, COMPLETED)}:output"},
    }
    values = EXAMPLES | made
    return {field.wire: values[field.wire] for field in usable(use) if not field.has("hidden")}


def assert_shown(field: Field, row: dict[str, Any], value: Any) -> None:
    shown = row[field.wire]
    if field.wire == "gates":
        # The gate of its type is always among them.
        assert set(shown) == {*value, f"type:{row['type']}"}
    elif field.wire == "retry":
        assert shown.items() >= value.items()
    elif isinstance(shown, datetime):
        assert shown == datetime.fromisoformat(value)
    elif isinstance(shown, Decimal):
        assert float(shown) == value
    elif isinstance(shown, UUID):
        assert str(shown) == value
    else:
        assert shown == value


def with_step(conn: Conn, task_id: UUID) -> UUID:
    query = "insert into treadle.steps (task_id, name, seq, attempt) values (%s, 's', 1, 0)"
    conn.execute(query.encode(), (task_id,))
    return task_id


def dead_lettered(conn: Conn, task_id: UUID) -> UUID:
    token = uuid4()
    queue = one(conn, "select queue from treadle.tasks where id = %s", task_id)
    query = "select id from treadle.claim_tasks('a', %s::text[], null, 1, true, %s)"
    assert one(conn, query, [queue], token) == task_id
    failed = """
        select verdict from treadle.fail_tasks(
          array[%s::uuid], array[%s::uuid], array['error'], array['boom'], array['fail']
        )
    """
    assert one(conn, failed, task_id, token) == "dead_lettered"
    return task_id


def assert_refused(error: psycopg.Error, field: Field) -> None:
    """Refused by the name of the field; a queue or type may as well be unknown."""
    known = {"TR001", {"queue": "TR202", "type": "TR203"}.get(field.wire)}
    assert error.sqlstate in known
    assert json.loads(error.diag.message_detail or "{}")["argument"] == field.wire


def test_every_field_of_the_list_has_known_flags_and_one_sentence_of_help() -> None:
    fields = [*FIELDS, *engine_fields(), *fields_of(TypeSettings, RetryPolicy, BreakerSettings)]

    assert {flag for field in fields for flag in field.flags.split()} == FLAGS
    assert [field.name for field in fields if not re.fullmatch(r"[A-Z][^.]*\.", field.help)] == []


@pytest.mark.parametrize(("field", "value"), cases(allowed), ids=label)
def test_the_ends_of_the_bounds_are_accepted(conn: Conn, field: Field, value: Any) -> None:
    task_id = enqueue(conn, **beside(field), **{field.wire: value})

    assert details(conn, task_id)["id"] == task_id


@pytest.mark.parametrize(("field", "value"), cases(refused), ids=label)
def test_one_step_beyond_is_refused_by_its_name(conn: Conn, field: Field, value: Any) -> None:
    with pytest.raises(psycopg.Error) as raised:
        enqueue(conn, **beside(field), **{field.wire: value})

    assert_refused(raised.value, field)


@pytest.mark.parametrize(
    ("use", "field"),
    [(use, each) for use in SETTERS for each in BOUNDED if use in uses_of(each)],
    ids=label,
)
def test_the_bounds_are_the_same_wherever_a_field_is_set(
    conn: Conn, use: str, field: Field
) -> None:
    for value in allowed(field):
        SETTERS[use](conn, **beside(field), **{field.wire: value})
    for value in refused(field):
        with pytest.raises(psycopg.Error) as raised, conn.transaction():
            SETTERS[use](conn, **beside(field), **{field.wire: value})
        assert_refused(raised.value, field)


@pytest.mark.parametrize("use", ["queue", "type", "node"])
def test_a_field_is_refused_where_it_cannot_be_set(conn: Conn, use: str) -> None:
    # A queue has a setting of this name too.
    others = [each.wire for each in FIELDS if use not in uses_of(each) and each.wire != "hold"]
    for name in others:
        with pytest.raises(psycopg.Error) as raised, conn.transaction():
            SETTERS[use](conn, **{name: EXAMPLES.get(name, "x")})
        assert raised.value.sqlstate == "TR001", name


def test_the_details_of_a_task_are_the_fields_of_the_list(conn: Conn) -> None:
    assert details(conn, enqueue(conn)).keys() == {field.wire for field in detail_fields()}


@pytest.mark.parametrize("field", SHOWN, ids=label)
def test_what_is_set_on_a_task_is_shown(conn: Conn, field: Field) -> None:
    given = examples(conn, "task")

    row = details(conn, enqueue(conn, **given))

    assert_shown(field, row, given[field.wire])


def by_enqueue_task(conn: Conn, task: dict[str, Any]) -> UUID:
    query = "select treadle.enqueue_task('default', 'code', p_options => %s)"
    made: UUID = one(conn, query, Jsonb(task))
    return made


def by_enqueue_batch(conn: Conn, task: dict[str, Any]) -> UUID:
    query = "select id from treadle.enqueue_batch('default', 'code', array['{}'::jsonb], %s)"
    made: UUID = one(conn, query, Jsonb(task))
    return made


def by_enqueue_tasks(conn: Conn, task: dict[str, Any]) -> UUID:
    return enqueue(conn, **task)


def by_create_dag(conn: Conn, task: dict[str, Any]) -> UUID:
    return create_dag(conn, **task)


def by_add_tasks(conn: Conn, task: dict[str, Any]) -> UUID:
    dag = one(conn, "select treadle.open_dag('d')")
    nodes = Jsonb([{"name": "n", "type": "code", **task}])
    made: UUID = one(conn, "select id from treadle.add_tasks(%s, %s)", dag, nodes)
    return made


def by_spawn_tasks(conn: Conn, task: dict[str, Any]) -> UUID:
    parent, token = enqueue(conn, priority=0), uuid4()
    claim = "select id from treadle.claim_tasks('a', array['default'], null, 1, true, %s)"
    assert one(conn, claim, token) == parent
    nodes = Jsonb([{"type": "code", **task}])
    query = "select id from treadle.spawn_tasks(%s, %s, 'split', %s)"
    made: UUID = one(conn, query, parent, token, nodes)
    return made


def by_schedule(conn: Conn, task: dict[str, Any]) -> UUID:
    settings = Jsonb({"cron": "0 2 * * *", "task": {"type": "code", **task}})
    one(conn, "select treadle.define_schedule('s', %s)", settings)
    made: UUID = one(conn, "select task_id from treadle.run_schedule('s')")
    return made


def by_trigger(conn: Conn, task: dict[str, Any]) -> UUID:
    settings = Jsonb({"on": "app.done", "task": {"type": "code", **task}})
    one(conn, "select id from treadle.define_trigger('t', %s)", settings)
    event = one(conn, "select treadle.emit_event('app.done', '{}')")
    made: UUID = one(conn, "select task_id from treadle.fire_trigger('t', %s)", event)
    assert made is not None
    return made


WAYS: list[Callable[[Conn, dict[str, Any]], UUID]] = [
    *(by_enqueue_task, by_enqueue_batch, by_enqueue_tasks, by_create_dag),
    *(by_add_tasks, by_spawn_tasks, by_schedule, by_trigger),
]
# Fields that are not shown: what they are given, and where their effect is seen.
EFFECTS: dict[str, tuple[Any, str, Any]] = {
    "urgency": (8, "priority", 25),
    "tier": ("high", "priority", 20),
    "delay_s": (60, "run_at", None),
    "hold": (True, "status", "created"),
    "project": ("p", "project_id", None),
    "dedupe": (True, "idempotency_key", None),
    "concurrency_limit": (3, "concurrency_key", "k"),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_option_that_is_accepted_is_ignored(
    conn: Conn, way: Callable[[Conn, dict[str, Any]], UUID]
) -> None:
    first = enqueue(conn, priority=100)
    effects = {**EFFECTS, "after": ([str(first)], "depends_on", [first])}
    values = {**examples(conn, "task"), **{name: each[0] for name, each in effects.items()}}
    taken, refusals = set(), {}
    for field in FIELDS:
        given = {**beside(field), field.wire: values[field.wire]}
        # The task is undone, so that the next one with this key is new.
        with conn.transaction(force_rollback=True):
            try:
                with conn.transaction():
                    task_id = way(conn, given)
            except psycopg.Error as error:
                refusals[field.wire] = error.sqlstate
                continue
            row = details(conn, task_id)
            taken.add(field.wire)
            if field.wire not in effects:
                assert_shown(field, row, values[field.wire])
                continue
            _, shown, effect = effects[field.wire]
            assert row[shown] is not None if effect is None else row[shown] == effect, field.wire

    assert set(refusals.values()) <= {"TR001"}, refusals
    assert taken >= {"priority", "tier", "urgency", "validation", "retry", "tags"}


@pytest.mark.parametrize("field", [each for each in SHOWN if "node" in uses_of(each)], ids=label)
def test_what_is_set_on_a_node_is_shown(conn: Conn, field: Field) -> None:
    given = examples(conn, "node")

    row = details(conn, create_dag(conn, **given))

    assert_shown(field, row, given[field.wire])


@pytest.mark.parametrize(
    "field",
    [each for each in SHOWN if "node" in uses_of(each) and each.wire not in OF_ONE_RUN],
    ids=label,
)
def test_a_fork_keeps_what_was_set(conn: Conn, field: Field) -> None:
    given = examples(conn, "task")
    task_id = with_step(conn, enqueue(conn, **given))

    forked = one(conn, "select treadle.fork_task(%s, 's')", task_id)

    assert_shown(field, details(conn, forked), given[field.wire])


# A new round has more attempts, and starts now.
@pytest.mark.parametrize(
    "field", [each for each in SHOWN if each.wire not in ("max_attempts", "run_at")], ids=label
)
def test_a_retry_keeps_what_was_set(conn: Conn, field: Field) -> None:
    given = examples(conn, "task")
    task_id = dead_lettered(conn, enqueue(conn, **given))

    one(conn, "select treadle.retry_task(%s)", task_id)

    assert_shown(field, details(conn, task_id), given[field.wire])


@pytest.mark.parametrize("field", editable_fields(), ids=label)
def test_a_fork_can_change_it(conn: Conn, field: Field) -> None:
    task_id = with_step(conn, enqueue(conn, **examples(conn, "task")))
    changes = {field.wire: CHANGES[field.wire]}

    forked = one(conn, "select treadle.fork_task(%s, 's', %s)", task_id, Jsonb(changes))

    assert_shown(field, details(conn, forked), CHANGES[field.wire])


@pytest.mark.parametrize("field", editable_fields(), ids=label)
def test_a_retry_can_change_it(conn: Conn, field: Field) -> None:
    task_id = dead_lettered(conn, enqueue(conn, **examples(conn, "task")))
    changes = {field.wire: CHANGES[field.wire]}

    one(conn, "select treadle.retry_task(%s, 'modify_and_retry', %s)", task_id, Jsonb(changes))

    row = details(conn, task_id)
    if field.wire == "max_attempts":
        assert row["max_attempts"] - row["attempt"] == CHANGES["max_attempts"]
    else:
        assert_shown(field, row, CHANGES[field.wire])


@pytest.mark.parametrize("field", [each for each in BOUNDED if each.has("edit")], ids=label)
def test_a_change_has_the_same_bounds(conn: Conn, field: Field) -> None:
    task_id = with_step(conn, dead_lettered(conn, enqueue(conn, **examples(conn, "task"))))
    for value in refused(field):
        changes = Jsonb({field.wire: value})
        with pytest.raises(psycopg.Error) as raised, conn.transaction():
            one(conn, "select treadle.retry_task(%s, 'modify_and_retry', %s)", task_id, changes)
        assert_refused(raised.value, field)
        with pytest.raises(psycopg.Error) as raised, conn.transaction():
            one(conn, "select treadle.fork_task(%s, 's', %s)", task_id, changes)
        assert_refused(raised.value, field)
