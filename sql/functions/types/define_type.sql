-- define_type: create a task type or change its settings; settings that are not given stay as they
-- are.
--
-- select treadle.define_type('crawl', '{"timeout_s": 600, "gates": ["anthropic"]}');
--
-- Gates that it names are created if they are missing. Settings that are given here belong to the
-- operator until code declares them; see declare_types. Returns whether the type is new.
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

-- store_type: create or change a type. p_declared: the settings are all that code declares.
--
-- A setting that code declared before and no longer declares returns to its default. Settings that
-- only an operator gave stay.
--
-- Concurrency: reads without a lock first, so that declaring the same again writes nothing. A
-- change is computed again under the lock of the row.
-- Lock order:  task_types, gates by key, then the history.
-- Raises:      TR001 invalid argument.
create or replace function treadle.store_type(
  p_name      text,
  p_settings  jsonb,
  p_actor     text,
  p_declared  boolean
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_made       boolean := false;
  v_old        treadle.task_types;
  v_new        treadle.task_types;
  v_given      jsonb := p_settings;
  v_keys       text[];
  v_gone       text[] := '{}';
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_options(p_settings, 'type', '{description,breaker}');
  perform treadle.check_breaker(p_settings -> 'breaker') where p_settings ? 'breaker';
  if p_declared then
    -- Null means that code does not declare a setting.
    v_given := coalesce(
      (
        select jsonb_object_agg(each.key, each.value)
        from jsonb_each(p_settings) as each
        where each.value <> 'null'
      ),
      '{}'
    );
  end if;
  v_keys := array(select given.name from jsonb_object_keys(v_given) as given (name) order by 1);
  if not exists (select from treadle.task_types where task_types.name = p_name) then
    insert into treadle.task_types (name) values (p_name) on conflict (name) do nothing;
    v_made := found;
  end if;

  for v_pass in 1..2 loop
    if v_pass = 1 then
      select task_types.* into v_old from treadle.task_types where task_types.name = p_name;
    else
      select task_types.* into v_old
      from treadle.task_types
      where task_types.name = p_name
      for no key update;
    end if;
    v_new := jsonb_populate_record(v_old, v_given);
    v_new.validation := treadle.canonical_validation(v_new.validation);
    if p_declared then
      v_gone := array(
        select gone.name from unnest(v_old.declared) as gone (name) where gone.name <> all (v_keys)
      );
      v_new := jsonb_populate_record(
        v_new,
        coalesce(
          (
            select
              jsonb_object_agg(
                gone.name, case when gone.name in ('retry', 'breaker') then '{}'::jsonb
                  when gone.name = 'gates' then '[]' else 'null' end
              )
            from unnest(v_gone) as gone (name)
          ),
          '{}'
        )
      );
      v_new.declared := v_keys;
    else
      v_new.declared := array(
        select kept.name
        from unnest(v_old.declared) with ordinality as kept (name, at)
        where kept.name <> all (v_keys)
        order by kept.at
      );
    end if;
    exit when v_new is not distinct from v_old;
  end loop;

  if v_new is distinct from v_old then
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
      fallback_models = v_new.fallback_models,
      declared = v_new.declared
    where task_types.name = p_name;
  end if;
  if v_new.gates is distinct from v_old.gates then
    perform treadle.make_gates(v_new.gates);
  end if;
  v_old.declared := v_new.declared;
  if v_made or v_new is distinct from v_old then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(), 'type.defined', coalesce(p_actor, session_user),
      -- The schema of a validator may be large, so it is left out of the event.
      jsonb_build_object('type', p_name, 'settings', v_given - 'validation')
      || case
        when v_gone = '{}' then '{}' else jsonb_build_object('reset', to_jsonb(v_gone))
      end
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

create or replace function treadle.define_type(
  p_name      text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns boolean
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select treadle.store_type(p_name, p_settings, p_actor, false)
$$;

comment on function treadle.define_type(text, jsonb, text) is
'Create or change a task type: task defaults, gates, breaker, cost limits, models, validators.';

-- declare_types: store the types, settings and queues that an application declares.
--
-- Called by workers when they start. The settings of types come from code: one that was removed
-- from it returns to its default. A queue is only created if it is missing, and its settings belong
-- to the operator. Of two versions of the code, the one that declares last decides. p_uses names
-- queues that the application uses; they must exist or be declared.
--
-- Concurrency: writes nothing if nothing has changed.
-- Lock order:  queues, task_types, each in order of name; gates.
-- Raises:      TR001 invalid argument, TR202 unknown queue.
create or replace function treadle.declare_types(
  p_types   jsonb,
  p_queues  text[] default '{}',
  p_uses    text[] default '{}'
)
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

  perform treadle.check_names(used.name, null)
  from unnest(p_uses) as used (name)
  where not exists (select from treadle.queues where queues.name = used.name);

  perform treadle.store_type(given.name, given.settings, null, true)
  from (
    select each.key as name, each.value as settings from jsonb_each(p_types) as each
    order by each.key
  ) as given;
end;
$$;

comment on function treadle.declare_types(jsonb, text[], text[]) is
'Store the types {"name": {settings}} and queues of an application.';

grant execute on function treadle.define_type(text, jsonb, text) to treadle_operator;
grant execute on function treadle.declare_types(jsonb, text[], text[]) to
treadle_producer, treadle_worker;
