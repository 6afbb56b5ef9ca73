-- check_requirements: check the retry policy and the validators of a queue, a type or a task.

-- check_retry: check a retry policy.
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
    perform treadle.raise_error(
      'a retry policy must be a JSON object',
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
      perform treadle.raise_error(
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

-- canonical_validator: return the name of a built-in validator that was written with hyphens or
-- capitals, such as json-schema; other names are returned as they are.
create or replace function treadle.canonical_validator(p_name text)
returns text
language sql
immutable
parallel safe
return case
  when
    lower(replace(p_name, '-', '_')) in (
      'json_schema', 'regex', 'test_pass', 'llm_judge', 'returns', 'none'
    )
    then lower(replace(p_name, '-', '_'))
  else p_name
end;

-- canonical_validation: return a list of validators with the canonical names of built-in ones.
create or replace function treadle.canonical_validation(p_validation jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when p_validation is null or p_validation = '[]' then p_validation
      else jsonb_agg(
        given.settings || jsonb_build_object(
          'validator', treadle.canonical_validator(given.settings ->> 'validator')
        )
        order by given.at
      )
    end
  from jsonb_array_elements(p_validation) with ordinality as given (settings, at)
$$;

-- misspelt_validator: return the built-in validator that a name seems to be a misspelling of.
--
-- Two letters may be wrong in a long name and one in a short one. Many words differ from none by
-- one letter only, so that a replaced letter is not taken for a misspelling there.
create or replace function treadle.misspelt_validator(p_name text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select built_in.name
  from (
    values
      ('json_schema', 2), ('test_pass', 2), ('llm_judge', 2), ('returns', 1), ('regex', 1),
      ('none', 1)
  ) as built_in (name, allowed)
  cross join lower(replace(p_name, '-', '_')) as given (name)
  where
    abs(char_length(given.name) - char_length(built_in.name)) <= built_in.allowed
    and treadle.edit_distance(given.name, built_in.name) <= built_in.allowed
    and (
      built_in.name <> 'none' or char_length(given.name) <> 4
      or array(select unnest(regexp_split_to_array(given.name, '')) order by 1) = '{e,n,n,o}'
    )
  limit 1
$$;

-- validator_problem: return what is wrong with the settings of one validator; null if they are
-- valid.
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
  v_name := treadle.canonical_validator(p_settings ->> 'validator');
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
    when 'returns' then null;
    when 'none' then null;
    else
      -- Any other name is a function that a worker registers, perhaps later.
      return case
        when treadle.misspelt_validator(v_name) is not null
          then format(
            'there is no validator %s; did you mean %s?', v_name,
            treadle.misspelt_validator(v_name)
          )
        -- The function receives these as arguments.
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
  return format('%s has the unknown setting %s', v_name, left(quote_literal(v_other), 60))
  where v_other is not null;
end;
$$;

-- check_validation: check a list of validators.
--
-- A list such as [{"validator": "regex", "pattern": "^ok"}]. The settings of built-in validators
-- are checked; those of others are up to their code. A name that looks like a misspelt built-in one
-- is rejected. Nothing is executed here.
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
    perform treadle.raise_error(
      format('the validation cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'validation', 'problem', v_problem),
      'For example [{"validator": "regex", "pattern": "^ok"}]; built in are json_schema (schema), '
      'regex (pattern), test_pass (name), llm_judge (criteria), returns and none; all accept '
      'timeout_s.'
    );
  end if;
end;
$$;
