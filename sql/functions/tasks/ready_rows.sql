-- ready_rows: make some waiting tasks claimable and wake who waits for them.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.ready_rows(p_rows tid[])
returns setof uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows tid[];
  v_ids  uuid[];
begin
  with moved as (
    update treadle.tasks
    set
      status = treadle.entry_status(tasks.concurrency_key, tasks.slot),
      slot = treadle.entry_slot(tasks.concurrency_key, tasks.slot),
      retry_at = null
    where tasks.ctid = any (p_rows)
    returning tasks.ctid, tasks.id
  )

  select array_agg(moved.ctid), array_agg(moved.id) into v_rows, v_ids from moved;
  perform treadle.announce_rows(v_rows, 'ready');
  return query select moved.id from unnest(v_ids) as moved (id);
end;
$$;

comment on function treadle.ready_rows(tid[]) is 'Internal: moves tasks to ready.';

revoke all on function treadle.ready_rows(tid[]) from public;
