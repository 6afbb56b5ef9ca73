-- define_type: make a task type, or change its settings; what is not named stays as it is.
--
-- select treadle.define_type('crawl', '{"timeout_s": 600, "gates": ["anthropic"]}');
--
-- Gates that it names are made where they are missing.
--
-- Concurrency: one row.
-- Lock order:  task_types, gates by key, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_type(
  p_name      text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_settings constant text[] := array[
    'description', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate', 'retry', 'gates',
    'breaker', 'max_cost_usd', 'max_tokens', 'on_budget', 'validation', 'report', 'models',
    'fallback_models'
  ];
  v_made       boolean;
  v_old        treadle.task_types;
  v_new        treadle.task_types;
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_settings(p_settings, c_settings);
  perform treadle.check_breaker(p_settings -> 'breaker') where p_settings ? 'breaker';
  perform treadle.check_validation(p_settings -> 'validation')
  where p_settings -> 'validation' <> 'null';
  insert into treadle.task_types (name) values (p_name) on conflict (name) do nothing;
  v_made := found;
  select task_types.* into v_old from treadle.task_types where task_types.name = p_name;
  v_new := jsonb_populate_record(v_old, p_settings);
  perform treadle.check_models(v_new.models || v_new.fallback_models);

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
      -- A schema may be large: it is on the type.
      jsonb_build_object('type', p_name, 'settings', p_settings - 'validation')
    );
  end if;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.refuse(
      format(
        'type %s cannot be defined so: %s', left(quote_nullable(p_name), 60),
        treadle.broken_rule(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'type'),
      'A name has 1 to 100 of letters, digits and _ . : / - and settings stay in range: '
      'priority 0-100, max_attempts 1-1000, timeout_s above 0, money and tokens 0 or more, '
      'on_budget ask or fail, report required or optional, gates and models lists of names.'
    );
end;
$$;

comment on function treadle.define_type(text, jsonb, text) is
'Make or change a task type: defaults for its tasks, gates, breaker, money, models, validators.';

revoke all on function treadle.define_type(text, jsonb, text) from public;
grant execute on function treadle.define_type(text, jsonb, text) to treadle_operator;
