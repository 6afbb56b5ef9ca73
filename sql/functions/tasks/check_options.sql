-- check_options: check the options of a queue, a type, a node of a DAG or a task.
--
-- The view task_fields lists the options for each use and their bounds. Only given options are
-- checked: a plain task has none to three. Null means that an option was not given. p_also names
-- other keys, which the caller checks.
--
-- Raises:      TR001 invalid argument, with the name of the option; TR002 too large.

-- field_rules: return the view task_fields as one object, by field name.
--
-- Immutable, since the view holds constants: a session reads it once and keeps the value in its
-- plans. Reading the view each time would cost more than the checks.
create or replace function treadle.field_rules()
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(fields.name, to_jsonb(fields) - 'help') from treadle.task_fields as fields
$$;

-- are_short_names: return whether a value is a list of up to p_max names of 1 to 200 characters.
create or replace function treadle.are_short_names(p_value jsonb, p_max numeric)
returns boolean
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_typeof(p_value) = 'array' and jsonb_array_length(p_value) <= p_max
    and not exists (
      select from jsonb_array_elements(p_value) as names (name)
      where
        jsonb_typeof(names.name) <> 'string'
        or char_length(names.name #>> '{}') not between 1 and 200
    );
end;
$$;

-- raise_invalid_option: raise the error for an invalid value of an option, with the allowed values.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.raise_invalid_option(p_name text, p_rule jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bounds text := format('from %s to %s', p_rule ->> 'low', p_rule ->> 'high');
begin
  perform treadle.raise_error(
    p_name || ' must ' || case p_rule ->> 'kind'
      when 'integer' then 'be a whole number ' || v_bounds
      when 'number' then 'be a number ' || v_bounds
      when 'text' then format('have %s to %s characters', p_rule ->> 'low', p_rule ->> 'high')
      when 'names'
        then format('be a list of up to %s names of 1 to 200 characters', p_rule ->> 'high')
      when 'time' then 'be a time from 1970 to 9999'
      when 'uuid' then 'be a UUID'
      when 'boolean' then 'be true or false'
      else 'be ' || (
        select string_agg(allowed.word, ' or ')
        from jsonb_array_elements_text(p_rule -> 'words') as allowed (word)
      )
    end,
    jsonb_build_object('argument', p_name),
    format('Omit %s to use the default.', p_name)
  );
end;
$$;

-- raise_unknown_option: raise the error for an unknown option, with the known ones.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.raise_unknown_option(p_name text, p_use text, p_also text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_noun text := case when p_use in ('queue', 'type') then 'setting' else 'option' end;
begin
  perform treadle.raise_error(
    format('unknown %s %s', v_noun, quote_literal(treadle.excerpt_name(p_name))),
    jsonb_build_object('argument', treadle.excerpt_name(p_name)),
    (
      select initcap(v_noun) || 's: ' || string_agg(known.name, ', ' order by known.name)
      from (
        select fields.name from treadle.task_fields as fields where p_use = any (fields.uses)
        union
        select also.name from unnest(p_also) as also (name)
      ) as known
    )
  );
end;
$$;

create or replace function treadle.check_options(
  p_options  jsonb,
  p_use      text,
  p_also     text[] default '{}'
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rule  jsonb;
  v_name  text;
  v_value jsonb;
  v_type  text;
  v_said  text;
  v_low   numeric;
  v_high  numeric;
  v_good  boolean;
begin
  if jsonb_typeof(p_options) is distinct from 'object' then
    perform treadle.raise_error(
      case
        when p_use in ('queue', 'type') then 'the settings must be a JSON object'
        else 'the options must be a JSON object'
      end,
      jsonb_build_object('argument', 'options')
    );
  end if;

  for v_name, v_value in select given.key, given.value from jsonb_each(p_options) as given loop
    continue when v_name = any (p_also);
    v_rule := treadle.field_rules() -> v_name;
    if v_rule is null or not v_rule -> 'uses' ? p_use then
      perform treadle.raise_unknown_option(v_name, p_use, p_also);
    end if;
    v_type := jsonb_typeof(v_value);
    continue when v_type = 'null';

    v_said := v_value #>> '{}';
    v_low := (v_rule ->> 'low')::numeric;
    v_high := (v_rule ->> 'high')::numeric;
    v_good := case v_rule ->> 'kind'
      when 'integer' then v_said::bigint between v_low and v_high
      when 'number' then v_said::numeric between v_low and v_high
      when 'text'
        then v_type in ('string', 'number', 'boolean')
          and char_length(v_said) between v_low and v_high
      when 'names' then treadle.are_short_names(v_value, v_high)
      when 'time' then treadle.is_valid_time(v_said::timestamptz)
      when 'uuid' then v_said::uuid is not null
      when 'boolean' then v_type = 'boolean'
      when 'word' then v_rule -> 'words' ? v_said
      else true
    end;
    if not v_good then
      perform treadle.raise_invalid_option(v_name, v_rule);
    end if;

    if v_name = 'retry' then
      perform treadle.check_retry(v_value);
    elsif v_name = 'validation' then
      perform treadle.check_validation(v_value);
    elsif v_name = 'run_at' and v_said::timestamptz > treadle.clock() + interval '10 years' then
      perform treadle.raise_error(
        'run_at must be a time within ten years', jsonb_build_object('argument', 'run_at')
      );
    end if;
  end loop;
exception
  when data_exception then
    perform treadle.raise_invalid_option(v_name, v_rule);
end;
$$;
