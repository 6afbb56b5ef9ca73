-- raise_paths: tasks got others behind them; they, and what they wait for, become more urgent.
--
-- Upwards from the tasks given, for as long as a chain grows: 30 levels at most, none is longer.
-- A critical path never shrinks. A task that somebody else holds is left as it is, with all above
-- it: it is being claimed or ended, and to wait for it here would be out of order.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  tasks (never waits for one).
-- Raises:      nothing.

create or replace function treadle.raise_paths(p_ids uuid[], p_lengths integer[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_ids     uuid[] := p_ids;
  v_lengths integer[] := p_lengths;
begin
  loop
    -- Locked in one statement, read in the next.
    select array_agg(held.id), array_agg(least(wanted.length, 30))
    into v_ids, v_lengths
    from (
      select given.id, max(given.length) as length
      from unnest(v_ids, v_lengths) as given (id, length)
      group by given.id
    ) as wanted
    cross join lateral (
      select tasks.id
      from treadle.tasks
      where
        tasks.id = wanted.id
        and tasks.completed_at is null
        and tasks.critical_path < least(wanted.length, 30)
      for no key update skip locked
    ) as held;
    exit when v_ids is null;

    with raised as (
      update treadle.tasks
      set
        critical_path = wanted.length,
        rank = tasks.rank - (wanted.length - tasks.critical_path) * 1000000::bigint
      from unnest(v_ids, v_lengths) as wanted (id, length)
      where tasks.id = wanted.id and tasks.critical_path < wanted.length
      returning tasks.id, tasks.critical_path
    )

    select array_agg(dependencies.depends_on), array_agg(raised.critical_path + 1)
    into v_ids, v_lengths
    from raised
    inner join treadle.dependencies on raised.id = dependencies.task_id
    where dependencies.met_at is null;
    exit when v_ids is null;
  end loop;
end;
$$;

comment on function treadle.raise_paths(uuid[], integer[]) is
'Internal: lengthens the critical path of tasks, and of those they wait for.';

revoke all on function treadle.raise_paths(uuid[], integer[]) from public;
