"""The pruner reads only a range of the tasks, whatever the planner assumes."""

from collections.abc import Iterator

import pytest

from tests.drivers.plans import BATCH, ROUNDS, Conn, cost

# Pages of a stretch times the most rows that lie on one.
STRETCH = 2048 * 60


@pytest.mark.requirement("B9")
def test_a_step_of_the_pruner_never_reads_the_whole_table(hostile: Conn) -> None:
    # What other tests have left in this database is walked over, too.
    hostile.execute("delete from treadle.tasks where status <> 'completed' or dag_id is not null")
    hostile.execute("""select treadle.define_queue('default', '{"keep_completed_s": 0}')""")
    place = "(0,0)"
    for _ in range(ROUNDS):
        scans, rows, [(place, pruned)] = cost(
            hostile, "select place::text, pruned from treadle.prune_tasks(%s::tid, %s)",
            (place, BATCH),
        )  # fmt: skip
        assert (scans, pruned) == (0, BATCH)
        # It stops at the first so many; then each is looked at a few times by its id.
        assert rows <= 2500 + 20 * BATCH


@pytest.mark.requirement("B9")
def test_a_stretch_without_anything_to_prune_is_bounded_too(hostile: Conn) -> None:
    hostile.execute(
        """
        select treadle.define_queue('default', '{"keep_completed_s": null, "keep_dead_s": 1}')
        """
    )
    scans, rows, [(pruned,)] = cost(hostile, "select pruned from treadle.prune_tasks()")
    assert (scans, pruned) == (0, 0)
    assert rows <= STRETCH


def test_where_everything_is_kept_nothing_is_read(hostile: Conn) -> None:
    hostile.execute(
        """
        select treadle.define_queue('default', '{"keep_completed_s": null, "keep_dead_s": null}')
        """
    )
    scans, rows, [(place,)] = cost(hostile, "select place from treadle.prune_tasks()")
    assert (scans, rows, place) == (0, 0, None)


@pytest.fixture
def slow(hostile: Conn) -> Iterator[None]:
    """A reader that has twenty thousand events before it, of tasks that are not there."""
    hostile.execute("insert into treadle.event_readers (name, xid, id) values ('slow', '0', 0)")
    hostile.execute(
        """
        insert into treadle.events (kind, task_id)
        select 'slow', gen_random_uuid() from generate_series(1, 20000)
        """
    )
    yield
    hostile.execute("delete from treadle.event_readers where name = 'slow'")
    hostile.execute("delete from treadle.events where kind = 'slow'")


@pytest.mark.requirement("B9")
@pytest.mark.usefixtures("slow")
def test_a_reader_that_is_far_behind_costs_a_step_no_more(hostile: Conn) -> None:
    hostile.execute("delete from treadle.tasks where status <> 'completed' or dag_id is not null")
    hostile.execute("""select treadle.define_queue('default', '{"keep_completed_s": 0}')""")
    with hostile.transaction():
        [[pruned]] = hostile.execute(
            "select pruned from treadle.prune_tasks(p_limit => %s)", (BATCH,)
        ).fetchall()
        [[read]] = hostile.execute(
            """
            select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
            where schemaname = 'treadle' and relname = 'events'
            """
        ).fetchall()

    assert pruned == BATCH
    assert read <= 20 * BATCH
