-- define_type: create a task type or change its settings; settings that are not given stay as they
-- are.
--
-- select treadle.define_type('crawl', '{"timeout_s": 600, "gates": ["anthropic"]}');
--
-- Gates that it names are created if they are missing. Returns whether the type is new.
--
-- Lock order:  task_types, gates by key, then the history.
-- Raises:      TR001 invalid argument.

-- check_breaker: check the breaker settings of a type.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_breaker(p_breaker jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  if jsonb_typeof(p_breaker) = 'object' then
    select case
      when each.key = 'threshold' then 'threshold must be a whole number from 0 (none) to 1000000'
      when each.key in ('first_probe_s', 'cooldown_s')
        then each.key || ' must be above 0 seconds and at most 31 days'
      else format('unknown setting %s', left(quote_literal(each.key), 100))
    end
    into v_problem
    from jsonb_each(p_breaker) as each
    where
      case
        when jsonb_typeof(each.value) <> 'number' then true
        when each.key = 'threshold'
          then not (
            (each.value #>> '{}')::numeric between 0 and 1000000
            and (each.value #>> '{}')::numeric % 1 = 0
          )
        when each.key in ('first_probe_s', 'cooldown_s')
          then not ((each.value #>> '{}')::numeric between 0.001 and 2678400)
        else true
      end
    order by each.key
    limit 1;
  else
    v_problem := 'it must be a JSON object';
  end if;
  if v_problem is not null then
    perform treadle.raise_error(
      format('the breaker settings are invalid: %s', v_problem),
      jsonb_build_object('argument', 'breaker'),
      'Settings: threshold, first_probe_s, cooldown_s'
    );
  end if;
end;
$$;

-- make_gates: create the gates that a type names, if they are missing.
--
-- Concurrency: of two sessions that create the same gate, the second waits for the first.
-- Lock order:  gates by key.
-- Raises:      TR001 invalid argument.
create or replace function treadle.make_gates(p_keys text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_keys) > 10 or array_position(p_keys, null) is not null then
    perform treadle.raise_error(
      'gates must be up to 10 names', jsonb_build_object('argument', 'gates'),
      'For example ["anthropic"].'
    );
  end if;
  perform treadle.check_gate(given.key, null, null, null) from unnest(p_keys) as given (key);
  insert into treadle.gates (key)
  select distinct given.key from unnest(p_keys) as given (key)
  where not treadle.is_gate(given.key)
  order by given.key
  on conflict (key) do nothing;
end;
$$;

create or replace function treadle.define_type(
  p_name      text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_made       boolean;
  v_old        treadle.task_types;
  v_new        treadle.task_types;
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_options(p_settings, 'type', '{description,breaker}');
  perform treadle.check_breaker(p_settings -> 'breaker') where p_settings ? 'breaker';
  insert into treadle.task_types (name) values (p_name) on conflict (name) do nothing;
  v_made := found;
  select task_types.* into v_old from treadle.task_types where task_types.name = p_name;
  v_new := jsonb_populate_record(v_old, p_settings);
  v_new.validation := treadle.canonical_validation(v_new.validation);

  -- An UPDATE cannot assign a whole row, so each setting is listed.
  update treadle.task_types
  set
    description = v_new.description,
    priority = v_new.priority,
    max_attempts = v_new.max_attempts,
    timeout_s = v_new.timeout_s,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry,
    gates = v_new.gates,
    breaker = v_new.breaker,
    max_cost_usd = v_new.max_cost_usd,
    max_tokens = v_new.max_tokens,
    on_budget = v_new.on_budget,
    validation = v_new.validation,
    report = v_new.report,
    output_type = v_new.output_type,
    models = v_new.models,
    fallback_models = v_new.fallback_models
  where task_types.name = p_name and v_new is distinct from v_old;
  if v_new.gates is distinct from v_old.gates then
    perform treadle.make_gates(v_new.gates);
  end if;
  if v_made or v_new is distinct from v_old then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(), 'type.defined', coalesce(p_actor, session_user),
      -- The schema of a validator may be large, so it is left out of the event.
      jsonb_build_object('type', p_name, 'settings', p_settings - 'validation')
    );
  end if;
  return v_made;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'type %s cannot be defined: %s', left(quote_nullable(p_name), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'type'),
      'A name has 1 to 100 letters, digits or _ . : / -'
    );
end;
$$;

comment on function treadle.define_type(text, jsonb, text) is
'Create or change a task type: task defaults, gates, breaker, cost limits, models, validators.';

-- declare_types: store the types, settings and queues that an application declares.
--
-- Called by workers and producers at start. The settings of types come from code; a queue is only
-- created if it is missing, and its settings belong to the operator.
--
-- Concurrency: writes nothing if nothing has changed.
-- Lock order:  queues, task_types, each in order of name; gates.
-- Raises:      TR001 invalid argument.
create or replace function treadle.declare_types(p_types jsonb, p_queues text[] default '{}')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_types) is distinct from 'object' then
    perform treadle.raise_error(
      'the types must be a JSON object',
      jsonb_build_object('argument', 'types'),
      'For example {"crawl": {"timeout_s": 600}}.'
    );
  end if;

  perform treadle.define_queue(given.name)
  from (select distinct wanted.name from unnest(p_queues) as wanted (name)) as given
  where not exists (select from treadle.queues where queues.name = given.name)
  order by given.name;

  perform treadle.define_type(given.name, given.settings)
  from (
    select each.key as name, each.value as settings from jsonb_each(p_types) as each
    order by each.key
  ) as given;
end;
$$;

comment on function treadle.declare_types(jsonb, text[]) is
'Store the types {"name": {settings}} and queues of an application.';

grant execute on function treadle.define_type(text, jsonb, text) to treadle_operator;
grant execute on function treadle.declare_types(jsonb, text[]) to
treadle_producer, treadle_worker;
