-- enqueue_tasks: enqueue tasks in one call; each is a JSON object with options and a spec.
--
-- select * from treadle.enqueue_tasks('[
--   {"type": "code", "spec": {"prompt": "..."}, "priority": 10},
--   {"type": "test", "spec": {}, "delay_s": 60, "idempotency_key": "nightly"}
-- ]');
--
-- Tasks that differ only in spec and key are prepared and stored together.
--
-- Concurrency: part of the caller's transaction; the tasks exist if and only if that commits. The
-- tasks that they depend on are locked first, for all of them together.
-- Lock order:  tasks (dependencies), lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type.

-- content_key: return an idempotency key computed from type and spec.
--
-- jsonb has one order of keys, so equal content gives an equal key.
create or replace function treadle.content_key(p_type text, p_spec jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select 'content:' || encode(
    sha256(convert_to(coalesce(p_type, '') || ' ' || coalesce(p_spec, '{}')::text, 'UTF8')), 'hex'
  )
$$;

comment on function treadle.content_key(text, jsonb) is
'The key that enqueue_task computes from type and spec with p_dedupe.';

-- enqueue_dependents: enqueue tasks of one kind that depend on other tasks, or read their outputs.
--
-- The options `after` and `inputs` are those of a task of a DAG. A task in no DAG waits if one of
-- its dependencies is dead-lettered.
--
-- Concurrency: see insert_nodes.
-- Lock order:  tasks, lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type.
create or replace function treadle.enqueue_dependents(
  p_queue    text,
  p_type     text,
  p_specs    jsonb[],
  p_options  jsonb,
  p_keys     text[]
)
returns table (id uuid, created boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_home  treadle.tasks;
  v_tasks jsonb;
  v_place bigint[];
begin
  if jsonb_typeof(p_options -> 'after') not in ('array', 'null') then
    perform treadle.raise_error(
      'after must be a list of tasks', jsonb_build_object('argument', 'after'),
      'Pass their ids, for example ["0190c4a2-..."], or [{"task": "0190c4a2-...", '
      || '"optional": true}].'
    );
  elsif jsonb_typeof(p_options -> 'inputs') not in ('object', 'null') then
    perform treadle.raise_error(
      'inputs must be an object', jsonb_build_object('argument', 'inputs'),
      'Name the arguments, for example {"brief": "task:0190c4a2-...:output"}.'
    );
  end if;

  -- Of two tasks with the same key, the second is the first.
  select
    jsonb_agg(
      (p_options - array['dedupe', 'idempotency_key'])
      || jsonb_build_object(
        'queue', p_queue, 'type', p_type, 'spec', given.spec, 'idempotency_key', given.key
      )
      order by given.at
    ) filter (where given.at = given.first),
    array_agg(given.first order by given.at)
  into v_tasks, v_place
  from (
    select
      one.spec, one.key, one.at,
      case
        when one.key is null then one.at else min(one.at) over (partition by one.key)
      end as first
    from unnest(p_specs, p_keys) with ordinality as one (spec, key, at)
  ) as given;
  if v_tasks is null then
    return;
  end if;

  v_home.created_at := treadle.clock();
  return query
  select made.id, made.created and given.first = given.at
  from (
    select
      each.first, each.at,
      count(*) filter (where each.first = each.at) over (order by each.first, each.at) as nth
    from unnest(v_place) with ordinality as each (first, at)
  ) as given
  inner join (
    select stored.id, stored.created, stored.nth
    from treadle.insert_nodes(v_tasks, v_home, 'wait', 'task') as inserted
    cross join lateral
      unnest(inserted.ids, inserted.created) with ordinality as stored (id, created, nth)
  ) as made on given.nth = made.nth
  order by given.at;
end;
$$;

-- enqueue_batch: enqueue many tasks of one kind; the fastest way.
--
-- select * from treadle.enqueue_batch('default', 'code', array['{"n": 1}', '{"n": 2}']::jsonb[]);
--
-- With {"dedupe": true} in the options, a task without a key gets one computed from its content. An
-- idempotency_key in the options is for a single task. With `after` or `inputs` the tasks depend on
-- others; see enqueue_dependents.
--
-- Concurrency: part of the caller's transaction; the tasks exist if and only if that commits.
-- Lock order:  tasks (dependencies), lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type.
create or replace function treadle.enqueue_batch(
  p_queue    text,
  p_type     text,
  p_specs    jsonb[],
  p_options  jsonb default '{}',
  p_keys     text[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_keys text[] := p_keys;
  v_long text;
  v_task treadle.tasks;
  v_kind record;
  v_depends boolean := false;
begin
  perform treadle.ensure_durable();

  if p_options ?| array['queue', 'type', 'spec', 'after', 'inputs'] then
    if p_options ?| array['queue', 'type', 'spec'] then
      perform treadle.raise_error(
        'queue, type and spec are not options but separate arguments',
        jsonb_build_object('argument', 'options'),
        'Remove them from the options.'
      );
    end if;
    v_depends := jsonb_typeof(p_options) = 'object';
  end if;
  if p_options ->> 'idempotency_key' is not null then
    if p_keys[1] is not null or cardinality(p_specs) <> 1 then
      perform treadle.raise_error(
        'the option idempotency_key is only for a single task without another key',
        jsonb_build_object('argument', 'idempotency_key'), 'Pass one key for each task in p_keys.'
      );
    end if;
    v_keys := array[p_options ->> 'idempotency_key'];
  end if;
  if (p_options -> 'dedupe') = 'true' then
    v_keys := array(
      select coalesce(given.key, treadle.content_key(p_type, given.spec))
      from unnest(p_specs, v_keys) with ordinality as given (spec, key, at)
      order by given.at
    );
  end if;

  if v_keys is not null then
    perform treadle.check_array_lengths(
      array_fill(null::uuid, array[cardinality(p_specs)]), null, 'keys', cardinality(v_keys)
    );
    select given.key
    into v_long
    from unnest(v_keys) as given (key)
    where char_length(given.key) not between 1 and 200
    limit 1;
    if found then
      perform treadle.raise_error(
        format('idempotency_key must have 1 to 200 characters, not %s', char_length(v_long)),
        jsonb_build_object('argument', 'idempotency_key'),
        'Use a hash of a long key, or omit it.'
      );
    end if;
  end if;

  if v_depends then
    return query
    select made.id, made.created
    from treadle.enqueue_dependents(p_queue, p_type, p_specs, p_options, v_keys) as made;
    return;
  end if;
  v_task.queue := p_queue;
  v_task.type := p_type;
  v_kind := treadle.prepare_task(p_options, 'task', treadle.clock(), v_task);
  return query
  select made.id, made.created
  from treadle.store_tasks(
    array[v_kind.task], case when (v_kind.task).has_options then array[v_kind.rest] end, p_specs,
    v_keys
  ) as made;
end;
$$;

comment on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) is
'Enqueue tasks with the same queue, type and options; returns one id for each spec, in order.';

create or replace function treadle.enqueue_tasks(p_tasks jsonb)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_kind    record;
  v_places  bigint[] := '{}';
  v_ids     uuid[] := '{}';
  v_created boolean[] := '{}';
begin
  if jsonb_typeof(p_tasks) is distinct from 'array' or jsonb_path_exists(
    p_tasks, '$[*] ? (@.type() != "object")'
  ) then
    perform treadle.raise_error(
      'tasks must be a JSON array of objects',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"type": "code", "spec": {"prompt": "..."}}].'
    );
  end if;

  if jsonb_path_exists(p_tasks, '$[*] ? (exists (@.after) || exists (@.inputs))') then
    perform treadle.lock_dependencies(
      array(
        select distinct refs.ref::uuid from treadle.node_refs(p_tasks) as refs
        where refs.ref ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
      )
    );
  end if;
  for v_kind in
    select
      given.task - array['spec', 'idempotency_key'] as options,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs,
      array_agg(given.task ->> 'idempotency_key' order by given.at) as keys,
      array_agg(given.at order by given.at) as places
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - array['spec', 'idempotency_key']
    -- Ordered by queue, so that two sessions that fill the same limited queues do not deadlock.
    order by min(given.task ->> 'queue'), min(given.at)
  loop
    select
      v_places || v_kind.places,
      v_ids || array_agg(made.id order by made.at),
      v_created || array_agg(made.created order by made.at)
    into v_places, v_ids, v_created
    from treadle.enqueue_batch(
      coalesce(v_kind.options ->> 'queue', 'default'),
      v_kind.options ->> 'type',
      v_kind.specs,
      v_kind.options - array['queue', 'type'],
      case when array_remove(v_kind.keys, null) <> '{}' then v_kind.keys end
    ) with ordinality as made (id, created, at);
  end loop;

  return query
  select made.id, made.created
  from unnest(v_places, v_ids, v_created) as made (place, id, created)
  order by made.place;
end;
$$;

comment on function treadle.enqueue_tasks(jsonb) is
'Enqueue tasks given as a JSON array; returns one id for each, in order.';

-- add_arguments: return options with those that were given as arguments; none may be given twice.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.add_arguments(p_options jsonb, p_arguments jsonb)
returns jsonb
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_twice text;
begin
  if p_options <> '{}' then
    select given.name
    into v_twice
    from jsonb_object_keys(p_arguments) as given (name)
    where p_options ->> given.name is not null
    limit 1;
    if found then
      perform treadle.raise_error(
        format('%s is given as an argument and as an option', v_twice),
        jsonb_build_object('argument', v_twice), 'Pass one of them.'
      );
    end if;
  end if;
  return p_options || p_arguments;
end;
$$;

-- enqueue_task: enqueue one task and return its id.
--
-- select treadle.enqueue_task('default', 'code', '{"prompt": "..."}');
-- select treadle.enqueue_task('default', 'code', '{}', p_priority => 10, p_delay_s => 60);
--
-- With p_dedupe and no key, the key is computed from the content, so that the same work is not
-- enqueued twice. The arguments have the names of the options; none may be given as both. To run it
-- after another task: p_options => '{"after": ["0190c4a2-..."]}'.
--
-- Concurrency: part of the caller's transaction; the task exists if and only if that commits.
-- Lock order:  tasks (dependencies), lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type.
create or replace function treadle.enqueue_task(
  p_queue            text,
  p_type             text,
  p_spec             jsonb default '{}',
  p_priority         integer default null,
  p_run_at           timestamptz default null,
  p_delay_s          double precision default null,
  p_idempotency_key  text default null,
  p_dedupe           boolean default false,
  p_options          jsonb default '{}'
)
returns uuid
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select made.id
  from treadle.enqueue_batch(
    p_queue,
    p_type,
    array[p_spec],
    treadle.add_arguments(
      p_options,
      jsonb_strip_nulls(
        jsonb_build_object(
          'priority', p_priority, 'run_at', p_run_at, 'delay_s', p_delay_s::text,
          'dedupe', nullif(p_dedupe, false)
        )
      )
    ),
    case when p_idempotency_key is not null then array[p_idempotency_key] end
  ) as made
$$;

comment on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) is 'Enqueue one task in the caller''s transaction; other settings go into p_options.';

grant execute on function treadle.content_key(text, jsonb) to treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) to
treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_tasks(jsonb) to treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) to treadle_producer, treadle_worker;
