"""SQL accepts the keys of settings, options and filters that the reference lists."""

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from treadle.fields import (
    EnqueueOptions,
    LetterFilter,
    QueueSettings,
    TaskContent,
    TaskFilter,
    TypeSettings,
    fields_of,
)


@pytest.mark.parametrize(
    ("call", "sources"),
    [
        ("treadle.enqueue_task('default', 'code', p_options => %s)", (TaskContent, EnqueueOptions)),
        ("treadle.define_type('code', %s)", (TypeSettings,)),
        ("treadle.define_queue('default', %s)", (QueueSettings,)),
        ("treadle.find_tasks(%s)", (TaskFilter,)),
        ("treadle.cancel_tasks_where(%s)", (TaskFilter,)),
        ("treadle.retry_tasks_where(%s)", (TaskFilter,)),
        ("treadle.resolve_dead_letters_where(%s)", (TaskFilter, LetterFilter)),
    ],
)
def test_the_error_about_an_unknown_key_lists_the_keys_of_the_reference(
    driver: Driver, call: str, sources: tuple[type, ...]
) -> None:
    with pytest.raises(psycopg.Error) as raised:
        driver.conn.execute(f"select {call}".encode(), (Jsonb({"unknown": 1}),))

    assert raised.value.sqlstate == "TR001"
    known = str(raised.value.diag.message_hint).rpartition(": ")[2].rstrip(".").split(", ")
    assert sorted(known) == sorted(field.wire for field in fields_of(*sources))
