-- enqueue_tasks: enqueue any tasks in one call; each is a json object of options and its spec.
--
-- select * from treadle.enqueue_tasks('[
--   {"type": "code", "spec": {"prompt": "..."}, "priority": 10},
--   {"type": "test", "spec": {}, "delay_s": 60, "idempotency_key": "nightly"}
-- ]');
--
-- Tasks that differ only in spec and key are prepared and stored together.
--
-- Concurrency: part of the caller's transaction: the tasks are there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.

-- content_key: an idempotency key made from what is to be done.
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
'The key that enqueue_task makes from type and spec with p_dedupe.';

-- enqueue_batch: enqueue many tasks of one kind; the fastest way in.
--
-- select * from treadle.enqueue_batch('default', 'code', array['{"n": 1}', '{"n": 2}']::jsonb[]);
--
-- With {"dedupe": true} in the options, a task without a key gets one made from its content.
--
-- Concurrency: part of the caller's transaction: the tasks are there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.
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
begin
  perform treadle.keep_durable();

  if (p_options -> 'dedupe') = 'true' then
    v_keys := array(
      select coalesce(given.key, treadle.content_key(p_type, given.spec))
      from unnest(p_specs, p_keys) with ordinality as given (spec, key, at)
      order by given.at
    );
  end if;

  if v_keys is not null then
    perform treadle.check_pairs(
      array_fill(null::uuid, array[cardinality(p_specs)]), null, 'keys', cardinality(v_keys)
    );
    select given.key
    into v_long
    from unnest(v_keys) as given (key)
    where octet_length(given.key) not between 1 and 200
    limit 1;
    if found then
      perform treadle.refuse(
        format('idempotency_key must have 1 to 200 bytes, not %s', octet_length(v_long)),
        jsonb_build_object('argument', 'idempotency_key'),
        'Hash a long key, or leave it out.'
      );
    end if;
  end if;

  return query
  select made.id, made.created
  from treadle.insert_tasks(
    treadle.prepare_task(
      p_options || jsonb_build_object('queue', p_queue, 'type', p_type), treadle.clock()
    ),
    p_specs,
    v_keys
  ) as made;
end;
$$;

comment on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) is
'Enqueue many tasks of one queue, type and set of options; one id for each spec, in order.';

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
    perform treadle.refuse(
      'the tasks must be a json array of objects',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"type": "code", "spec": {"prompt": "..."}}].'
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
    -- By queue: two that fill the same queues with a depth limit do not block each other.
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
      v_kind.options,
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
'Enqueue any tasks given as a json array; one id for each, in order.';

-- enqueue_task: enqueue one task and get its id.
--
-- select treadle.enqueue_task('default', 'code', '{"prompt": "..."}');
-- select treadle.enqueue_task('default', 'code', '{}', p_priority => 10, p_delay_s => 60);
--
-- With p_dedupe and no key, the key is made from the content: the same work is not queued twice.
--
-- Concurrency: part of the caller's transaction: the task is there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.
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
    p_options || jsonb_strip_nulls(
      jsonb_build_object(
        'priority', p_priority, 'run_at', p_run_at, 'delay_s', p_delay_s::text, 'dedupe', p_dedupe
      )
    ),
    case when p_idempotency_key is not null then array[p_idempotency_key] end
  ) as made
$$;

comment on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) is 'Enqueue one task in the caller''s transaction; further settings go into p_options.';

grant execute on function treadle.content_key(text, jsonb) to treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) to
treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_tasks(jsonb) to treadle_producer, treadle_worker;
grant execute on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) to treadle_producer, treadle_worker;
