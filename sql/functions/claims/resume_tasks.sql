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
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_rows   tid[];
  v_queues text[];
  v_due_at timestamptz;
begin
  with moved as (
    update treadle.tasks
    set status = case
      when tasks.blocked_count > 0 or tasks.run_at > v_now then 'pending' else 'ready'
    end
    where
      tasks.id = any (p_ids)
      and tasks.status = 'blocked'
      and not exists (
        select from treadle.waits
        where waits.task_id = tasks.id and waits.status = 'open' and waits.awaited
      )
    returning tasks.ctid, tasks.queue, tasks.status, tasks.run_at, tasks.blocked_count
  )

  select
    array_agg(moved.ctid),
    array_agg(distinct moved.queue) filter (where moved.status = 'ready'),
    min(moved.run_at) filter (where moved.status = 'pending' and moved.blocked_count = 0)
  into v_rows, v_queues, v_due_at
  from moved;

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'resumed', null);
end;
$$;

comment on function treadle.resume_tasks(uuid[]) is
'Internal: moves blocked tasks on whose waits are over.';

revoke all on function treadle.resume_tasks(uuid[]) from public;
