-- audit_tasks: write one event per task, for queues whose audit is full.
--
-- Concurrency: none; the rows are those of the caller's own update.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.audit_tasks(p_rows tid[], p_what text, p_actor text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if not exists (select from treadle.queues where queues.audit = 'full') then
    return;
  end if;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    treadle.clock(),
    'task.' || p_what,
    tasks.id,
    tasks.queue,
    p_actor,
    jsonb_build_object('status', tasks.status, 'attempt', tasks.attempt)
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where tasks.ctid = any (p_rows) and queues.audit = 'full'
  order by tasks.id;
end;
$$;

comment on function treadle.audit_tasks(tid[], text, text) is
'Internal: records a transition of tasks in queues with a full audit.';

revoke all on function treadle.audit_tasks(tid[], text, text) from public;
