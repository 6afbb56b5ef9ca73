-- prepare_task: turn the options of a new task into checked rows, with their lane and rank.
--
-- Tasks that differ only in their arguments are prepared once. The task's own value takes
-- precedence over its type's, and that over its queue's. Options are applied to p_task and p_rest
-- if those are given: a retry and a fork start from a task. Waiting time counts from run_at if
-- there is one. `define` is for code that has the handler: `type` has the settings of a type that
-- may not exist yet, and `queue` is true if the code declares the queue. A queue may hold its new
-- tasks.
--
-- Concurrency: may create a lane, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type, TR208 unknown
--              project.

-- apply_aliases: convert options that are not columns of the task.
--
-- urgency and tier set the priority, delay_s sets run_at, project is the name of a project, and
-- concurrency_limit sets the limit of the key.
--
-- Concurrency: see request_key_limit.
-- Raises:      TR001 invalid argument, TR208 unknown project.
create or replace function treadle.apply_aliases(
  p_task     treadle.tasks,
  p_options  jsonb,
  p_now      timestamptz
)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
  v_both text;
begin
  select min(pair.alias)
  into v_both
  from (
    values
    ('urgency', 'priority'), ('tier', 'priority'), ('tier', 'urgency'), ('delay_s', 'run_at'),
    ('project', 'project_id')
  ) as pair (alias, name)
  where p_options ->> pair.alias is not null and p_options ->> pair.name is not null;
  if v_both is not null then
    perform treadle.raise_error(
      case v_both
        when 'delay_s' then 'run_at and delay_s cannot be combined'
        when 'project' then 'project and project_id cannot be combined'
        else 'priority, urgency and tier cannot be combined'
      end,
      jsonb_build_object('argument', v_both), 'Pass one of them.'
    );
  end if;

  if p_options ->> 'urgency' is not null then
    v_task.priority := treadle.priority_of_urgency((p_options ->> 'urgency')::integer);
  elsif p_options ->> 'tier' is not null then
    v_task.priority := treadle.priority_of_tier(p_options ->> 'tier');
  end if;
  if p_options ->> 'delay_s' is not null then
    v_task.run_at := p_now + make_interval(secs => (p_options ->> 'delay_s')::float8);
    v_task.delayed_at := p_now;
  end if;
  if p_options ->> 'project' is not null then
    v_task.project_id := treadle.find_project_by_name(p_options ->> 'project');
  end if;
  if p_options ->> 'concurrency_limit' is not null then
    perform treadle.request_key_limit(
      v_task.concurrency_key, (p_options ->> 'concurrency_limit')::integer
    );
  end if;
  return v_task;
end;
$$;

-- apply_defaults: fill in missing values from the type of a task, then from its queue.
create or replace function treadle.apply_defaults(
  p_task   treadle.tasks,
  p_type   treadle.task_types,
  p_queue  treadle.queues
)
returns treadle.tasks
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
begin
  v_task.priority := coalesce(v_task.priority, p_type.priority, p_queue.priority, 50);
  v_task.max_attempts := coalesce(
    v_task.max_attempts, p_type.max_attempts, p_queue.max_attempts, 3
  );
  v_task.timeout_s := coalesce(v_task.timeout_s, p_type.timeout_s, p_queue.timeout_s);
  v_task.max_cost_usd := coalesce(v_task.max_cost_usd, p_type.max_cost_usd);
  v_task.capped := p_queue.max_depth is not null;
  v_task.critical_path := coalesce(v_task.critical_path, 0);
  return v_task;
end;
$$;

create or replace function treadle.prepare_task(
  p_options  jsonb,
  p_use      text,
  p_now      timestamptz,
  p_task     treadle.tasks default null,
  p_rest     treadle.task_options default null,
  out task   treadle.tasks,
  out rest   treadle.task_options
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Every task from Python comes with the definition of its type, and often with nothing else.
  v_options jsonb := case
    when jsonb_typeof(p_options) = 'object' then p_options - 'define' else p_options
  end;
  v_queue   treadle.queues;
  v_type    treadle.task_types;
begin
  task := p_task;
  rest := p_rest;
  if v_options is distinct from '{}' then
    perform treadle.check_options(
      v_options, p_use,
      case p_use
        when 'edit' then '{set,unset}'::text[] when 'node' then '{name}' else '{}'
      end
    );
    task := jsonb_populate_record(task, v_options);
    rest := jsonb_populate_record(rest, v_options);
    if v_options ? 'validation' then
      rest.validation := treadle.canonical_validation(rest.validation);
    end if;
  end if;
  task.queue := coalesce(task.queue, 'default');
  select queues.* into v_queue from treadle.queues where queues.name = task.queue;
  select task_types.* into v_type from treadle.task_types where task_types.name = task.type;
  if v_queue.name is null or v_type.name is null then
    if v_type.name is null and p_options -> 'define' ? 'type' then
      perform treadle.declare_types(jsonb_build_object(task.type, p_options #> '{define,type}'));
    end if;
    if v_queue.name is null and p_options #> '{define,queue}' = 'true' then
      perform treadle.declare_types('{}', array[task.queue]);
    end if;
    perform treadle.check_names(task.queue, task.type);
    select queues.* into v_queue from treadle.queues where queues.name = task.queue;
    select task_types.* into v_type from treadle.task_types where task_types.name = task.type;
  end if;

  if p_options ?| array['urgency', 'tier', 'delay_s', 'project', 'concurrency_limit'] then
    task := treadle.apply_aliases(task, p_options, p_now);
  end if;

  task := treadle.apply_defaults(task, v_type, v_queue);
  rest.max_tokens := coalesce(rest.max_tokens, v_type.max_tokens);
  rest.on_budget := coalesce(rest.on_budget, v_type.on_budget);
  rest.task_id := null;
  task.has_options := not rest is null;

  task.created_at := p_now;
  task.created_by := coalesce(task.created_by, session_user);
  task.slot := null;
  if v_queue.hold or coalesce((p_options ->> 'hold')::boolean, false) then
    task.status := 'created';
  elsif task.run_at > p_now then
    task.status := 'pending';
  else
    task.status := treadle.entry_status(task.concurrency_key, null);
    task.slot := treadle.entry_slot(task.concurrency_key, null);
  end if;
  task := treadle.assign_lane(task, rest, v_type, v_queue);
end;
$$;
