-- checks: checks of arguments that several nouns share.

-- check_pairs: refuse ids and tokens that do not pair up.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_pairs(
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
    perform treadle.refuse(
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

-- check_settings: refuse settings that are not known, and a malformed retry policy among them.
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
    perform treadle.refuse(
      'settings must be a json object', jsonb_build_object('argument', 'settings')
    );
  end if;

  select keys.name
  into v_other
  from jsonb_object_keys(p_settings) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.refuse(
      format('unknown setting %s', quote_literal(treadle.excerpt_name(v_other))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other)),
      'Settings: ' || array_to_string(p_known, ', ')
    );
  end if;

  if p_settings ? 'retry' then
    perform treadle.check_retry(p_settings -> 'retry');
  end if;
end;
$$;

-- check_actor: refuse a name or a note that says nothing or too much.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_actor(p_actor text, p_note text default null)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(btrim(p_actor)) > 0 and octet_length(p_actor) <= 200, false) then
    perform treadle.refuse(
      'actor must have 1 to 200 bytes',
      jsonb_build_object('argument', 'actor'),
      'Say who it is, by a name that is always the same.'
    );
  elsif octet_length(p_note) > 10000 then
    perform treadle.refuse(
      format('note has %s bytes, 10000 are allowed', octet_length(p_note)),
      jsonb_build_object('argument', 'note'),
      'Put what is longer into the answer, or elsewhere.'
    );
  end if;
end;
$$;

-- json_problem: why a json value could not be handed to a worker; empty when it can.
--
-- A claim carries inputs and steps. One that could not be sent would fail every claim of its lane,
-- so it must not get in. Size is that of the stored json, out of its compression. Numbers like
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
    -- 64 levels need over 128 bytes.
    when bytes > 128 and jsonb_path_exists(v_value, '$.**{65}')
      then 'is nested more than 64 levels deep'
    when jsonb_path_exists(v_value, c_long) then 'has numbers that are too long to be sent'
  end;
end;
$$;

-- check_document: refuse json that is missing, too large, too deep, or too long when sent.
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
    perform treadle.refuse(
      format('%s is missing', p_name),
      jsonb_build_object('argument', p_name),
      'Pass a json value.'
    );
  elsif v_found.problem is not null then
    perform treadle.refuse(
      format('%s %s', p_name, v_found.problem),
      jsonb_build_object('argument', p_name, 'bytes', v_found.bytes, 'max_bytes', p_max_bytes),
      'Store the data elsewhere and pass a reference.',
      case when v_found.bytes > p_max_bytes then 'TR002' else 'TR001' end
    );
  end if;
end;
$$;

-- is_moment: whether a time is one that every client can read, in whatever zone.
--
-- Raises:      nothing; null for null.
create or replace function treadle.is_moment(p_at timestamptz)
returns boolean
language sql
immutable
parallel safe
return (
  p_at >= timestamptz '1970-01-01 00:00:00+00'
  and p_at <= timestamptz '9999-12-31 00:00:00+00'
);
