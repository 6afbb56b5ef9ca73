-- read_options: the options of a new task as a row, before anything is filled in.
--
-- One that is to be held has the status created.
--
-- Raises:      TR001 invalid argument, with the name of the option.

-- misfit_of: the name of the first value that the column of that name does not take.
--
-- Asked when a whole row was refused: PostgreSQL says what is wrong with a value, not whose it is.
--
-- Raises:      nothing; null when each value fits.
create or replace function treadle.misfit_of(p_row anyelement, p_given jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  for v_name in select keys.name from jsonb_object_keys(p_given) as keys (name) loop
    perform jsonb_populate_record(p_row, jsonb_build_object(v_name, p_given -> v_name));
  end loop;
  return null;
exception
  when data_exception then
    return v_name;
end;
$$;

create or replace function treadle.read_options(p_options jsonb, p_now timestamptz)
returns treadle.tasks
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_options constant text[] := array[
    'queue', 'type', 'priority', 'run_at', 'delay_s', 'hold', 'timeout_s', 'max_attempts',
    'ageing_rate', 'deadline_at', 'capabilities', 'assigned_agent', 'retry', 'validation',
    'consumer', 'title', 'tags', 'created_by', 'source', 'source_job', 'external_ref', 'notes',
    'parent_id', 'project_id', 'max_cost_usd', 'max_tokens', 'on_budget', 'gates',
    'concurrency_key', 'concurrency_limit', 'urgency', 'tier', 'project', 'dedupe', 'define',
    'report', 'models', 'fallback_models'
  ];
  v_task  treadle.tasks;
  v_name  text;
  v_other text[];
begin
  if jsonb_typeof(p_options) is distinct from 'object' then
    perform treadle.refuse(
      'the options must be a json object', jsonb_build_object('argument', 'options')
    );
  end if;
  v_other := array(
    select keys.name from jsonb_object_keys(p_options) as keys (name)
    where keys.name <> all (c_options)
  );
  if cardinality(v_other) > 0 then
    perform treadle.refuse(
      format('unknown option %s', quote_literal(treadle.excerpt_name(v_other[1]))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other[1])),
      format(
        'Options: %s. A task of a DAG also has name, after, inputs and spec.',
        array_to_string(c_options, ', ')
      )
    );
  end if;

  v_task := jsonb_populate_record(null::treadle.tasks, p_options);
  v_name := 'hold';
  if (p_options ->> 'hold')::boolean then
    v_task.status := 'created';
  end if;
  v_name := 'delay_s';
  if p_options ? 'delay_s' then
    if v_task.run_at is not null then
      perform treadle.refuse(
        'run_at and delay_s say the same thing',
        jsonb_build_object('argument', 'delay_s'), 'Give one of them.'
      );
    elsif not (p_options ->> 'delay_s')::float8 between 0 and 315360000 then
      perform treadle.refuse(
        'delay_s must be 0 or more seconds, up to ten years',
        jsonb_build_object('argument', 'delay_s')
      );
    end if;
    v_task.run_at := p_now + make_interval(secs => (p_options ->> 'delay_s')::float8);
    v_task.delayed_at := p_now;
  end if;
  return v_task;
exception
  when data_exception then
    v_name := coalesce(v_name, treadle.misfit_of(null::treadle.tasks, p_options));
    perform treadle.refuse(
      format('%s: %s', v_name, sqlerrm), jsonb_build_object('argument', v_name),
      'Check its type and range.'
    );
end;
$$;

-- own_options: what a task says of itself, as options of enqueue.
--
-- Not what is about this one run of it: its key, its DAG, its parent, its start.
create or replace function treadle.own_options(p_task treadle.tasks)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(kept.key, kept.value)
  from jsonb_each(to_jsonb(p_task)) as kept
  where
    kept.key in (
      'queue', 'type', 'priority', 'timeout_s', 'ageing_rate', 'deadline_at', 'capabilities',
      'assigned_agent', 'retry', 'validation', 'consumer', 'title', 'tags', 'source', 'source_job',
      'external_ref', 'notes', 'project_id', 'max_cost_usd', 'max_tokens', 'on_budget', 'gates',
      'concurrency_key', 'report', 'models', 'fallback_models'
    )
    and kept.value <> 'null'
$$;
