-- check_requirements: checks of the models and validators in the settings of a type.

-- check_models: refuse what cannot be a list of models.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_models(p_models text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_models) > 40 or exists (
    select from unnest(p_models) as given (name)
    where octet_length(given.name) between 1 and 200 is not true
  ) then
    perform treadle.refuse(
      'models must be at most 20 names of 1 to 200 bytes',
      jsonb_build_object('argument', 'models'), 'For example ["large", "small"].'
    );
  end if;
end;
$$;

-- validator_problem: what is wrong with the settings of one validator; null when nothing is.
create or replace function treadle.validator_problem(p_settings jsonb)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name  text;
  v_needs text;
  v_kinds text[] := '{string}';
  v_other text;
begin
  if jsonb_typeof(p_settings) is distinct from 'object' then
    return format('a validator must be an object, not %s', treadle.excerpt(p_settings));
  end if;
  v_name := p_settings ->> 'validator';
  if jsonb_typeof(p_settings -> 'validator') is distinct from 'string'
    or v_name !~ '^[A-Za-z0-9_.:/-]{1,100}$' then
    return format('%s does not name a validator', treadle.excerpt(p_settings -> 'validator'));
  end if;
  if p_settings ? 'timeout_s' and (
    jsonb_typeof(p_settings -> 'timeout_s') <> 'number'
    or not (p_settings -> 'timeout_s')::numeric between 0.001 and 86400
  ) then
    return format('%s: timeout_s must be a number of seconds, up to a day', v_name);
  end if;

  case v_name
    when 'json_schema' then
      v_needs := 'schema';
      v_kinds := '{object,boolean}';
    when 'regex' then v_needs := 'pattern';
    when 'test_pass' then v_needs := 'name';
    when 'llm_judge' then v_needs := 'criteria';
    when 'none' then null;
    else
      -- The function behind the name gets these by other means.
      return case
        when p_settings ?| array['output', 'ctx']
          then format('%s: output and ctx cannot be settings', v_name)
      end;
  end case;
  if v_needs is not null
    and (jsonb_typeof(p_settings -> v_needs) = any (v_kinds)) is not true then
    return format('%s needs %s as %s', v_name, v_needs, array_to_string(v_kinds, ' or '));
  elsif p_settings -> v_needs = '""' then
    return format('%s: %s is empty', v_name, v_needs);
  end if;
  select keys.name
  into v_other
  from jsonb_object_keys(p_settings) as keys (name)
  where keys.name <> all (array['validator', 'timeout_s', coalesce(v_needs, 'validator')])
  limit 1;
  return format('%s does not know %s', v_name, left(quote_literal(v_other), 60))
  where v_other is not null;
end;
$$;

-- check_validation: refuse validators that could not be called.
--
-- A list like [{"validator": "regex", "pattern": "^ok"}]. Of the built-in ones the settings are
-- known; what others take is up to the code behind their name. Nothing here is ever executed.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_validation(p_validation jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document('validation', p_validation, 262144);
  if jsonb_typeof(p_validation) <> 'array' then
    v_problem := 'it must be a list';
  elsif jsonb_array_length(p_validation) > 20 then
    v_problem := 'it has more than 20 validators';
  else
    select treadle.validator_problem(given.settings)
    into v_problem
    from jsonb_array_elements(p_validation) as given (settings)
    where treadle.validator_problem(given.settings) is not null
    limit 1;
  end if;

  if v_problem is not null then
    perform treadle.refuse(
      format('the validation cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'validation', 'problem', v_problem),
      'For example [{"validator": "regex", "pattern": "^ok"}]; built in are json_schema (schema), '
      'regex (pattern), test_pass (name), llm_judge (criteria) and none; timeout_s goes with all.'
    );
  end if;
end;
$$;
