-- resume_tasks: let blocked tasks go on that have all their answers.
--
-- To ready, or to pending where they wait for tasks or for a moment as well.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.resume_tasks(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  with moved as (
    update treadle.tasks
    set
      budget_id = null,
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > v_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= v_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    where
      tasks.id = any (p_ids)
      and tasks.status = 'blocked'
      and not exists (
        select from treadle.waits
        where waits.task_id = tasks.id and waits.status = 'open' and waits.awaited
      )
    returning tasks.ctid
  )

  select array_agg(moved.ctid) into v_rows from moved;
  perform treadle.announce_rows(v_rows, 'resumed');
end;
$$;

comment on function treadle.resume_tasks(uuid[]) is
'Internal: moves blocked tasks on whose waits are over.';

revoke all on function treadle.resume_tasks(uuid[]) from public;
