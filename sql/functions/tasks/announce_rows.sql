-- announce_rows: tell who waits for tasks that were let go, and record it.
--
-- Workers of those that are ready, the promoter of those that wait for their time alone. Without a
-- word for what happened the caller records it.
--
-- Concurrency: none; the rows are those of the caller's own update.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.announce_rows(p_rows tid[], p_what text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_queues text[];
  v_due_at timestamptz;
  v_keys   text[];
begin
  select
    array_agg(distinct tasks.queue) filter (where tasks.status = 'ready'),
    min(tasks.run_at) filter (
      where tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.slot is null
    ),
    array_agg(distinct tasks.concurrency_key) filter (where tasks.slot = 'waiting')
  into v_queues, v_due_at, v_keys
  from treadle.tasks
  where tasks.ctid = any (p_rows);

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.request_slots(v_keys) where v_keys is not null;
  perform treadle.audit_tasks(p_rows, p_what, null) where p_what is not null;
end;
$$;

comment on function treadle.announce_rows(tid[], text) is
'Internal: wakes workers and promoter for tasks that moved, and audits the move.';

revoke all on function treadle.announce_rows(tid[], text) from public;
