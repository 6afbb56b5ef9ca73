-- 0017_work: what work items need: one in progress per agent, and a log that is kept.
--
-- Work items are the tasks of queue `work`; tasks of other queues are not in these indexes. Whoever
-- has used a queue of that name before drains it first: an agent that has two of its tasks in hand
-- stands in the way of the first index.

create unique index tasks_work_agent_idx on treadle.tasks (agent_id)
where queue = 'work' and status in ('claimed', 'running', 'validating');

create index tasks_work_idx on treadle.tasks (status, created_at, id)
where queue = 'work';

-- Insert-only, see tg_work_log__keep; it outlives the tasks that it is about.
create table treadle.work_log (
  id           uuid not null default treadle.uuidv7(),
  number       bigint not null generated always as identity,
  task_id      uuid not null,
  at           timestamptz not null default clock_timestamp(),
  actor        text not null default session_user,
  from_status  text,
  to_status    text not null,
  agent        text,
  handed_over  boolean not null default false,
  note         text,
  constraint work_log_pkey primary key (id),
  constraint work_log_status_check check (
    to_status in (
      'queued', 'dispatched', 'in_progress', 'blocked', 'completed', 'failed', 'cancelled'
    )
  )
);

comment on table treadle.work_log is
'Append-only: every change of a work item, in the words of the work API.';
comment on column treadle.work_log.handed_over is
'The item was given to the agent by this: it was dispatched, or given to another one.';
comment on column treadle.work_log.note is
'What was said with the change; with the first one, a description too long for a title.';

create index work_log_task_idx on treadle.work_log (task_id, number);
