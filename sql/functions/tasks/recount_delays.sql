-- recount_delays: let delays that were made under a clock that ran ahead count from now.
--
-- A delay that counts from a moment in the future was made while the clock of the database was
-- wrong, or the clock was set back since. The task would wait for the whole jump; so it waits for
-- its delay from now on, whatever made that delay: a policy, a rate limit, a handler, a caller. A
-- moment that a caller named is a wish and stays. Repeating it changes nothing.
--
-- Concurrency: rows locked by others are skipped. A row that cannot be changed is reported and does
--              not stop the others.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.recount_delays(
  p_limit  integer,
  p_skip   uuid[],
  p_now    timestamptz
)
returns table (id uuid, problem text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_rows tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status in ('pending', 'retrying') and tasks.delayed_at is not null
      and tasks.delayed_at > p_now and tasks.id <> all (p_skip)
    order by tasks.delayed_at
    limit p_limit
    for update skip locked
  );
begin
  if v_rows = '{}' then
    return;
  end if;
  begin
    perform treadle.recount_rows(v_rows, p_now);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_rows) loop
      begin
        perform treadle.recount_rows(v_rows[v_at:v_at], p_now);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.recount_delays(integer, uuid[], timestamptz) is
'Internal: shortens waits that a wrong clock has made too long; returns rows that it could not.';

revoke all on function treadle.recount_delays(integer, uuid[], timestamptz) from public;
