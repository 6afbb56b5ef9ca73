-- add_work: a new work item; it is queued until the dispatcher gives it to an agent.
--
-- select treadle.add_work('code_review', 'Review PR #3', '{"pr": 3}', p_agent => 'steve-w');
--
-- The priority is 1 (highest) to 5. A type that nobody has used before is made. An agent that is
-- named here gets the item once it is dispatched, and need not be registered.
--
-- Concurrency: part of the caller's transaction: the item is there exactly if it commits.
-- Lock order:  queues, task_types, lanes, tasks, then the history.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full, TR208 unknown project.

-- open_work: make the queue of work items and a type where they are missing.
--
-- A type that comes this way has no breaker: people and their agents decide about each item.
--
-- Concurrency: two sessions that make the same: the second waits for the first.
-- Lock order:  queues, task_types.
-- Raises:      TR001 invalid argument.
create or replace function treadle.open_work(p_type text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from treadle.queues where queues.name = 'work') then
    perform treadle.define_queue('work');
  end if;
  if not exists (select from treadle.task_types where task_types.name = p_type) then
    perform treadle.define_type(p_type, '{"breaker": {"threshold": 0}}');
  end if;
end;
$$;

create or replace function treadle.add_work(
  p_type         text,
  p_description  text,
  p_payload      jsonb default '{}',
  p_priority     integer default 3,
  p_agent        text default null,
  p_project      uuid default null,
  p_created_by   text default null,
  p_actor        text default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_long boolean := octet_length(p_description) > 1000;
  v_task treadle.tasks;
  v_id   uuid;
begin
  perform treadle.check_work_text('description', p_description, 20000, true);
  perform treadle.check_work_text('assigned_agent', p_agent, 200, false);
  perform treadle.check_work_text('created_by', p_created_by, 200, false);
  if p_project is not null then
    perform treadle.project_of(p_project);
  end if;
  perform treadle.keep_durable();
  perform treadle.open_work(p_type);

  v_task := treadle.prepare_task(
    jsonb_strip_nulls(
      jsonb_build_object(
        'queue', 'work', 'type', p_type, 'tier', coalesce(p_priority, 3)::text,
        'title', case when v_long then left(p_description, 200) || '…' else p_description end,
        'assigned_agent', p_agent, 'project_id', p_project,
        'created_by', coalesce(p_created_by, p_actor),
        -- What a type asks of workers is not asked of agents that the dispatcher deals with.
        'report', 'optional'
      )
    ),
    treadle.clock()
  );
  v_task.timeout_s := null;
  select made.id
  into v_id
  from treadle.insert_tasks(v_task, array[coalesce(p_payload, '{}')]) as made;
  perform treadle.log_work(
    v_id, p_actor, null, 'queued', p_agent, case when v_long then p_description end,
    p_at => v_task.created_at
  );
  return v_id;
end;
$$;

comment on function treadle.add_work(text, text, jsonb, integer, text, uuid, text, text) is
'Make a work item, queued for the dispatcher; returns its id.';

grant execute on function
treadle.add_work(text, text, jsonb, integer, text, uuid, text, text) to
treadle_producer, treadle_worker, treadle_operator;
