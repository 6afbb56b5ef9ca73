"""`treadle tasks cancel`, `retry` and `prioritise`, and queues that are full."""

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn


def counts(items: list[dict[str, object]]) -> dict[object, object]:
    return {each["verdict"]: each["tasks"] for each in items}


@pytest.mark.requirement("B7")
def test_a_dry_run_counts_by_queue_type_and_state_and_changes_nothing(
    cli: Cli, sync_conn: Conn
) -> None:
    task = commands.enqueue(sync_conn, tags=["old"])
    commands.enqueue(sync_conn)

    looked = cli("tasks", "cancel", "--queue", "default", "--tag", "old", "--dry-run")

    assert looked.code == 0
    assert looked.rows == [
        ["tasks", "verdict", "status", "queue", "type", "error"],
        ["1", "found", "ready", "default", "code", ""],
    ]
    assert commands.status(sync_conn, task) == "ready"


@pytest.mark.requirement("B7")
def test_tasks_are_cancelled_by_age_and_queue_with_a_reason(cli: Cli, sync_conn: Conn) -> None:
    old, new = commands.enqueue(sync_conn), commands.enqueue(sync_conn)
    sync_conn.execute(
        "update treadle.tasks set created_at = now() - interval '3 hours' where id = %s", (old,)
    )

    done = cli(
        *("tasks", "cancel", "--queue", "default", "--type", "code"),
        *("--created-before", "2h", "--reason", "stale", "--json"),
    )

    assert (done.code, counts(done.json["items"])) == (0, {"cancelled": 1})
    assert [commands.status(sync_conn, each) for each in (old, new)] == ["cancelled", "ready"]
    shown = cli("tasks", "show", old, "--json").json
    assert shown["failure_reason"] == "stale"


@pytest.mark.requirement("F28")
def test_waiting_tasks_are_prioritised_by_id_or_by_filters(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn, tags=["x"])

    by_id = cli("tasks", "prioritise", task, "--priority", "7", "--reason", "soon", "--json")
    looked = cli("tasks", "prioritise", "--tag", "x", "--tier", "low", "--dry-run", "--json")
    done = cli("tasks", "prioritise", "--tag", "x", "--tier", "low", "--json")

    [verdict] = by_id.json["items"]
    assert verdict == {"id": str(task), "verdict": "prioritised", "priority": 7}
    assert counts(looked.json["items"]) == {"found": 1}
    assert counts(done.json["items"]) == {"prioritised": 1}
    assert cli("tasks", "show", task, "--json").json["priority"] == 70
    assert "give one of priority" in cli("tasks", "prioritise", task).err
    cli("tasks", "cancel", task)
    assert cli("tasks", "prioritise", task, "--tier", "low").code == 4


@pytest.mark.requirement("B7")
def test_dead_letters_are_retried_by_class(cli: Cli, sync_conn: Conn) -> None:
    slow = commands.dead_letter(sync_conn, failure_class="timeout")
    broken = commands.dead_letter(sync_conn)
    filters = ("--status", "dead_lettered", "--failure-class", "timeout")

    looked = cli("tasks", "retry", *filters, "--dry-run", "--json")
    assert counts(looked.json["items"]) == {"found": 1}
    done = cli("tasks", "retry", *filters, "--reason", "provider is back", "--json")

    assert (done.code, counts(done.json["items"])) == (0, {"retried": 1})
    states = [commands.status(sync_conn, each) for each in (slow, broken)]
    assert states == ["ready", "dead_lettered"]


def test_a_failed_retry_sets_the_exit_code(cli: Cli, sync_conn: Conn) -> None:
    gone = commands.enqueue(sync_conn, tags=["x"])
    sync_conn.execute("update treadle.tasks set idempotency_key = 'k' where id = %s", (gone,))
    sync_conn.execute("select treadle.cancel_task(%s)", (gone,))
    other = commands.enqueue(sync_conn)
    sync_conn.execute("update treadle.tasks set idempotency_key = 'k' where id = %s", (other,))

    done = cli("tasks", "retry", "--status", "cancelled", "--tag", "x")

    assert done.code == 4
    assert "another task now has the key" in done.out
    assert "1 tasks were not changed" in done.err


@pytest.mark.requirement("B7")
def test_more_than_a_hundred_need_a_yes(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute(
        "select treadle.enqueue_batch('default', 'code', array_fill('{}'::jsonb, array[101]))"
    )

    asked = cli("tasks", "cancel", "--queue", "default")
    assert asked.code == 2
    assert "cancel 101 tasks" in asked.err
    part = cli("tasks", "cancel", "--queue", "default", "--limit", "1", "--json")
    assert counts(part.json["items"]) == {"cancelled": 1, "left": 100}
    assert "100 more tasks match" in part.err
    done = cli("tasks", "cancel", "--queue", "default", "--yes", "--json")

    assert counts(done.json["items"]) == {"cancelled": 100}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "select tasks either by id or by filters"),
        (["9f3a21c4", "--queue", "default"], 2, "either by id or by filters"),
        (["9f3a21c4", "--dry-run"], 2, "--dry-run needs filters"),
        (["--created-before", "soon"], 2, "filter"),
        (["--status", "completed"], 2, "status must be one or more of"),
        (["--dag", "x"], 2, "x"),
        (["--queue", "mial"], 3, "there is no queue 'mial'"),
        (["--type", "cdoe"], 3, "there is no task type 'cdoe'"),
    ],
)
@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_bad_filters_are_refused(
    verb: str, arguments: list[str], code: int, said: str, still: Cli
) -> None:
    refused = still("tasks", verb, *arguments)

    assert refused.code == code
    assert said in refused.err


def test_a_full_queue_refuses_with_exit_code_5(cli: Cli, sync_conn: Conn) -> None:
    assert cli("queues", "update", "default", "--max-depth", "1", "--fair").code == 0
    assert cli("tasks", "enqueue", "code").code == 0

    full = cli("tasks", "enqueue", "code")
    assert full.code == 5
    assert "1 of at most 1 tasks are waiting" in full.err
    [queue] = cli("queues", "list", "--json").json["items"]
    assert (queue["depth"], queue["max_depth"], queue["fair"]) == (1, 1, True)
    header, row = cli("queues", "list").rows
    assert row[header.index("depth")] == "1/1"

    assert cli("queues", "update", "default", "--max-depth", "0", "--no-fair").code == 0
    assert cli("tasks", "enqueue", "code").code == 0
