-- tell_completed: write events of completed tasks where somebody waits for them.
--
-- A queue with a full audit has them already.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  events.
-- Raises:      nothing.

create or replace function treadle.tell_completed(p_ids uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if not treadle.wants_event('task.completed') then
    return;
  end if;
  insert into treadle.events (at, kind, task_id, dag_id, queue, actor, data)
  select
    p_now, 'task.completed', tasks.id, tasks.dag_id, tasks.queue, tasks.completed_by,
    jsonb_build_object('status', tasks.status, 'attempt', tasks.attempt)
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where
    tasks.id = any (p_ids) and queues.audit <> 'full'
    and treadle.wants_event('task.completed', tasks.type, tasks.queue)
  order by tasks.id;
end;
$$;

comment on function treadle.tell_completed(uuid[], timestamptz) is
'Internal: writes task.completed for tasks that somebody looks at.';

revoke all on function treadle.tell_completed(uuid[], timestamptz) from public;
