-- unpark_rows: put parked tasks back, where they wait for nothing else now.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.unpark_rows(p_rows tid[], p_now timestamptz)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows tid[];
begin
  with freed as (
    update treadle.tasks
    set
      budget_id = null,
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > p_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= p_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    where tasks.ctid = any (p_rows)
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.announce_rows(v_rows, 'ready');
  return coalesce(v_rows, '{}');
end;
$$;

comment on function treadle.unpark_rows(tid[], timestamptz) is
'Internal: moves parked tasks to ready, or to where they wait for something else.';

revoke all on function treadle.unpark_rows(tid[], timestamptz) from public;
