-- checks: argument checks that several nouns share.

-- check_array_lengths: check that there are as many values as ids.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_array_lengths(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_name    text default 'tokens',
  p_length  integer default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_length integer := coalesce(p_length, cardinality(p_tokens));
begin
  if cardinality(p_ids) is distinct from v_length then
    perform treadle.raise_error(
      format('%s ids but %s %s', coalesce(cardinality(p_ids), 0), coalesce(v_length, 0), p_name),
      jsonb_build_object('argument', p_name),
      case p_name
        when 'tokens' then 'Pass the claim token that came with each task.'
        else 'Pass one value for each id, in the same order.'
      end
    );
  end if;
end;
$$;

-- check_settings: reject unknown settings.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_settings(p_settings jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  if jsonb_typeof(p_settings) is distinct from 'object' then
    perform treadle.raise_error(
      'settings must be a JSON object', jsonb_build_object('argument', 'settings')
    );
  end if;

  select keys.name
  into v_other
  from jsonb_object_keys(p_settings) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.raise_error(
      format('unknown setting %s', quote_literal(treadle.excerpt_name(v_other))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other)),
      'Settings: ' || array_to_string(p_known, ', ')
    );
  end if;
end;
$$;

-- check_actor: check the length of an actor name and a note.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_actor(p_actor text, p_note text default null)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(char_length(btrim(p_actor)) > 0 and char_length(p_actor) <= 200, false) then
    perform treadle.raise_error(
      'actor must have 1 to 200 characters',
      jsonb_build_object('argument', 'actor'),
      'Pass a stable name for the person or program that makes the call.'
    );
  elsif char_length(p_note) > 10000 then
    perform treadle.raise_error(
      format('note has %s characters, 10000 are allowed', char_length(p_note)),
      jsonb_build_object('argument', 'note'),
      'Put longer text into the answer, or store it elsewhere.'
    );
  end if;
end;
$$;

-- json_problem: return why a JSON value cannot be sent to a worker; null if it can.
--
-- A claim carries inputs and steps. One that cannot be sent would make every claim of its lane
-- fail, so it is rejected on entry. The size is that of the uncompressed jsonb. Numbers such as
-- 1e100000 are short when stored and long when sent.
create or replace function treadle.json_problem(
  p_value      jsonb,
  p_max_bytes  bigint,
  out bytes bigint,
  out problem text
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_long  constant jsonpath :=
    '$.** ? (@ > 1e300 || @ < -1e300 || (@ > 0 && @ < 1e-300) || (@ < 0 && @ > -1e-300))';
  v_value jsonb := p_value #> '{}';
begin
  bytes := coalesce(pg_column_size(v_value), 0);
  problem := case
    when bytes > p_max_bytes then format('has %s bytes, %s are allowed', bytes, p_max_bytes)
    -- 64 levels take more than 128 bytes.
    when bytes > 128 and jsonb_path_exists(v_value, '$.**{65}')
      then 'is nested more than 64 levels deep'
    when jsonb_path_exists(v_value, c_long) then 'contains numbers that are too long to send'
  end;
end;
$$;

-- check_document: reject JSON that is missing, too large, too deep, or too long to send.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_document(
  p_name       text,
  p_value      jsonb,
  p_max_bytes  integer default 1048576
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record := treadle.json_problem(p_value, p_max_bytes);
begin
  if p_value is null then
    perform treadle.raise_error(
      format('%s is missing', p_name),
      jsonb_build_object('argument', p_name),
      'Pass a JSON value.'
    );
  elsif v_found.problem is not null then
    perform treadle.raise_error(
      format('%s %s', p_name, v_found.problem),
      jsonb_build_object('argument', p_name, 'bytes', v_found.bytes, 'max_bytes', p_max_bytes),
      'Store the data elsewhere and pass a reference.',
      case when v_found.bytes > p_max_bytes then 'TR002' else 'TR001' end
    );
  end if;
end;
$$;

-- is_valid_time: return whether every client can represent a time in any time zone; null for null.
create or replace function treadle.is_valid_time(p_at timestamptz)
returns boolean
language sql
immutable
parallel safe
return (
  p_at >= timestamptz '1970-01-01 00:00:00+00'
  and p_at <= timestamptz '9999-12-31 00:00:00+00'
);
