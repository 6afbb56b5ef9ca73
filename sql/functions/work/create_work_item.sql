-- create_work_item: create a work item, which is queued until the dispatcher gives it to an agent.
--
-- select treadle.create_work_item('code_review', 'Review PR #3', '{"pr": 3}', p_agent =>
-- 'steve-w');
--
-- The priority is 1 (highest) to 5. An unknown type is created. An agent named here gets the item
-- once it is dispatched, and need not be registered.
--
-- Concurrency: part of the caller's transaction; the item exists if and only if that commits.
-- Lock order:  queues, task_types, lanes, tasks, then the history.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full, TR208 unknown project.

-- ensure_work_queue: create the queue of work items and a type if they are missing.
--
-- A type created here has no breaker: people and their agents decide about each item.
--
-- Concurrency: of two sessions that create the same, the second waits for the first.
-- Lock order:  queues, task_types.
-- Raises:      TR001 invalid argument.
create or replace function treadle.ensure_work_queue(p_type text)
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

create or replace function treadle.create_work_item(
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
  v_long boolean := char_length(p_description) > 1000;
  v_kind record;
  v_task treadle.tasks;
  v_id   uuid;
begin
  perform treadle.check_work_text('description', p_description, 20000, true);
  perform treadle.check_work_text('assigned_agent', p_agent, 200, false);
  perform treadle.check_work_text('created_by', p_created_by, 200, false);
  if p_project is not null then
    perform treadle.find_project_by_id(p_project);
  end if;
  perform treadle.ensure_durable();
  perform treadle.ensure_work_queue(p_type);

  v_kind := treadle.prepare_task(
    jsonb_strip_nulls(
      jsonb_build_object(
        'queue', 'work', 'type', p_type,
        'priority', treadle.priority_of_tier(coalesce(p_priority, 3)::text),
        'title', case when v_long then left(p_description, 200) || '…' else p_description end,
        'assigned_agent', p_agent, 'project_id', p_project,
        'created_by', coalesce(p_created_by, p_actor),
        -- Requirements of a type for workers do not apply to agents of the dispatcher.
        'report', 'optional'
      )
    ),
    'task',
    treadle.clock()
  );
  v_task := v_kind.task;
  v_task.timeout_s := null;
  select made.id
  into v_id
  from treadle.store_tasks(
    array[v_task], array[v_kind.rest], array[coalesce(p_payload, '{}')]
  ) as made;
  perform treadle.log_work(
    v_id, p_actor, null, 'queued', p_agent, case when v_long then p_description end,
    p_at => v_task.created_at
  );
  return v_id;
end;
$$;

comment on function treadle.create_work_item(text, text, jsonb, integer, text, uuid, text, text) is
'Create a work item, queued for the dispatcher; returns its id.';

grant execute on function
treadle.create_work_item(text, text, jsonb, integer, text, uuid, text, text) to
treadle_producer, treadle_worker, treadle_operator;
