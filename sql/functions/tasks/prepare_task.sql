-- prepare_task: turn the options of a new task into a checked row with its lane and rank.
--
-- Many tasks of one kind are prepared once. The task's own value wins over its type's, and that
-- over its queue's. Waiting counts from run_at where there is one. `define` makes a type or queue
-- that nobody has declared: code that has the handler knows. A queue may hold its new tasks.
--
-- Concurrency: may make a lane, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

-- apply_words: options of a new task that are said in other words than its columns.
--
-- urgency (1 to 10) and tier stand for a priority, project for the id of the one with that name,
-- and concurrency_limit belongs to the key.
--
-- Concurrency: see limit_key.
-- Raises:      TR001 invalid argument, TR208 unknown project.
create or replace function treadle.apply_words(p_task treadle.tasks, p_options jsonb)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
  v_name text;
begin
  if (p_options ? 'priority')::integer + (p_options ? 'urgency')::integer
    + (p_options ? 'tier')::integer > 1 then
    perform treadle.refuse(
      'priority, urgency and tier say the same thing',
      jsonb_build_object('argument', 'priority'), 'Give one of them.'
    );
  end if;
  v_name := 'urgency';
  if p_options ? 'urgency' then
    v_task.priority := treadle.priority_of_urgency((p_options ->> 'urgency')::integer);
  elsif p_options ? 'tier' then
    v_task.priority := treadle.priority_of_tier(p_options ->> 'tier');
  end if;
  if p_options ? 'project' then
    v_task.project_id := treadle.project_named(p_options ->> 'project');
  end if;
  v_name := 'concurrency_limit';
  if p_options ? 'concurrency_limit' then
    perform treadle.limit_key(
      v_task.concurrency_key, (p_options ->> 'concurrency_limit')::integer
    );
  end if;
  return v_task;
exception
  when data_exception then
    perform treadle.refuse(
      format('%s: %s', v_name, sqlerrm), jsonb_build_object('argument', v_name),
      'Give a whole number.'
    );
end;
$$;

-- check_retry: refuse a retry policy that could not be followed.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_retry(p_retry jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key   text;
  v_value jsonb;
  v_good  boolean;
begin
  if jsonb_typeof(p_retry) is distinct from 'object' then
    perform treadle.refuse(
      'a retry policy must be a json object',
      jsonb_build_object('argument', 'retry'),
      'For example {"strategy": "exponential", "initial_delay_s": 10}.'
    );
  end if;

  for v_key, v_value in select each.key, each.value from jsonb_each(p_retry) as each
  loop
    v_good := case
      when v_key = 'strategy' then
        v_value in ('"exponential"', '"fixed"', '"immediate"')
      when v_key in ('initial_delay_s', 'max_delay_s') then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 0 and 2592000
      when v_key = 'multiplier' then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 1 and 100
      when v_key in ('jitter', 'poison') then
        jsonb_typeof(v_value) = 'boolean'
      when v_key = 'max_rate_limits' then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 0 and 10000
      when v_key in ('retry_on', 'no_retry_on') then
        jsonb_typeof(v_value) = 'array' or (v_value = 'null' and v_key = 'retry_on')
      else false
    end;

    if not coalesce(v_good, false) then
      perform treadle.refuse(
        format(
          'retry policy: %s cannot be %s', treadle.excerpt_name(v_key), treadle.excerpt(v_value)
        ),
        jsonb_build_object('argument', 'retry', 'key', treadle.excerpt_name(v_key)),
        'Keys: strategy (exponential, fixed, immediate), initial_delay_s, multiplier, max_delay_s, '
        'jitter, retry_on, no_retry_on, max_rate_limits, poison. Delays are seconds, up to 30 days.'
      );
    end if;
  end loop;
end;
$$;

-- check_task: refuse values that no task can have.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_task(p_task treadle.tasks, p_now timestamptz)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text;
  v_must  text;
begin
  select rules.name, rules.must
  into v_wrong, v_must
  from (
    values
    ('priority', p_task.priority between 0 and 100, 'be 0 (critical) to 100 (background)'),
    ('max_attempts', p_task.max_attempts between 1 and 1000, 'be 1 to 1000'),
    ('timeout_s', p_task.timeout_s > 0 and p_task.timeout_s <= 31536000, 'be above 0'),
    ('ageing_rate', p_task.ageing_rate between 0 and 1000, 'be 0 to 1000 points a minute'),
    ('max_cost_usd', p_task.max_cost_usd >= 0 and p_task.max_cost_usd < 'Infinity', 'be 0 or more'),
    ('max_tokens', p_task.max_tokens >= 0, 'be 0 or more'),
    ('on_budget', p_task.on_budget in ('ask', 'fail'), 'be ask or fail'),
    ('report', p_task.report in ('required', 'optional'), 'be required or optional'),
    (
      'run_at',
      treadle.is_moment(p_task.run_at) and p_task.run_at < p_now + interval '10 years',
      'be a moment within ten years'
    ),
    ('deadline_at', treadle.is_moment(p_task.deadline_at), 'be a moment from 1970 to 9999'),
    (
      'idempotency_key',
      octet_length(p_task.idempotency_key) between 1 and 200,
      'have 1 to 200 bytes'
    ),
    (
      'concurrency_key',
      octet_length(p_task.concurrency_key) between 1 and 200,
      'have 1 to 200 bytes'
    ),
    ('consumer', octet_length(p_task.consumer) between 1 and 200, 'have 1 to 200 bytes'),
    ('title', octet_length(p_task.title) <= 1000, 'have at most 1000 bytes'),
    (
      'capabilities',
      cardinality(p_task.capabilities) <= 50 and array_position(p_task.capabilities, null) is null,
      'be at most 50 names'
    )
  ) as rules (name, good, must)
  -- An empty value is no value: the rule does not apply.
  where not rules.good
  limit 1;

  if found then
    perform treadle.refuse(
      format('%s must %s', v_wrong, v_must),
      jsonb_build_object('argument', v_wrong),
      format('Leave %s out for the default.', v_wrong)
    );
  end if;

  if p_task.retry is not null then
    perform treadle.check_retry(p_task.retry);
  end if;
  if p_task.validation is not null then
    perform treadle.check_validation(p_task.validation);
  end if;
  if p_task.models is not null or p_task.fallback_models is not null then
    perform treadle.check_models(p_task.models || p_task.fallback_models);
  end if;
end;
$$;

-- apply_defaults: fill in what a task does not say from its type, and then from its queue.
create or replace function treadle.apply_defaults(
  p_task   treadle.tasks,
  p_type   treadle.task_types,
  p_queue  treadle.queues
)
returns treadle.tasks
language plpgsql
volatile
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
  v_task.max_tokens := coalesce(v_task.max_tokens, p_type.max_tokens);
  v_task.on_budget := coalesce(v_task.on_budget, p_type.on_budget);
  v_task.capped := p_queue.max_depth is not null;
  v_task.critical_path := coalesce(v_task.critical_path, 0);
  return v_task;
end;
$$;

create or replace function treadle.prepare_task(p_options jsonb, p_now timestamptz)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task  treadle.tasks := treadle.read_options(p_options, p_now);
  v_queue treadle.queues;
  v_type  treadle.task_types;
  v_hold  boolean;
begin
  v_task.queue := coalesce(v_task.queue, 'default');
  if p_options ? 'define' and not treadle.are_names(v_task.queue, v_task.type) then
    perform treadle.declare_types(
      jsonb_build_object(v_task.type, p_options -> 'define'), array[v_task.queue]
    );
  end if;
  perform treadle.check_names(v_task.queue, v_task.type);
  select queues.* into v_queue from treadle.queues where queues.name = v_task.queue;
  v_hold := v_queue.hold or coalesce(v_task.status = 'created', false);
  select task_types.* into v_type from treadle.task_types where task_types.name = v_task.type;

  if p_options ?| array['urgency', 'tier', 'project', 'concurrency_limit'] then
    v_task := treadle.apply_words(v_task, p_options);
  end if;
  v_task := treadle.apply_defaults(v_task, v_type, v_queue);
  perform treadle.check_task(v_task, p_now);

  v_task.created_at := p_now;
  v_task.status := case
    when v_hold then 'created'
    when v_task.run_at > p_now then 'pending'
    else treadle.entry_status(v_task.concurrency_key, null)
  end;
  if not v_hold and not coalesce(v_task.run_at > p_now, false) then
    v_task.slot := treadle.entry_slot(v_task.concurrency_key, null);
  end if;
  return treadle.place_task(v_task, v_type, v_queue);
end;
$$;
