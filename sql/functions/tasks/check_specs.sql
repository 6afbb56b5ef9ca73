-- check_specs: refuse payloads that are not an object, too large or too deep.
--
-- Size is that of the stored json. 64 levels need over 128 bytes, so small ones are not walked.
-- A number like 1e100000 is short when stored and long when sent to an agent: enough of them could
-- never be sent, and the task would block its lane.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_specs(p_specs jsonb[], p_max_bytes integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_long constant jsonpath :=
    '$.** ? (@ > 1e300 || @ < -1e300 || (@ > 0 && @ < 1e-300) || (@ < 0 && @ > -1e-300))';
  v_at   bigint;
  v_spec jsonb;
begin
  select given.at, given.spec
  into v_at, v_spec
  from unnest(p_specs) with ordinality as given (spec, at)
  where
    jsonb_typeof(given.spec) is distinct from 'object'
    or pg_column_size(given.spec) > p_max_bytes
    or (pg_column_size(given.spec) > 128 and jsonb_path_exists(given.spec, '$.**{65}'))
    or case
      when pg_column_size(given.spec) <= 8192 then octet_length(given.spec::text) > p_max_bytes
      else jsonb_path_exists(given.spec, c_long)
    end
  order by given.at
  limit 1;

  if not found then
    return;
  end if;

  if jsonb_typeof(v_spec) is distinct from 'object' then
    perform treadle.refuse(
      format('the spec must be a json object, not %s', coalesce(jsonb_typeof(v_spec), 'missing')),
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass the arguments of the handler by name: {"prompt": "..."}.'
    );
  elsif pg_column_size(v_spec) > p_max_bytes then
    perform treadle.refuse(
      format('the spec has %s bytes, %s are allowed', pg_column_size(v_spec), p_max_bytes),
      jsonb_build_object(
        'argument', 'spec', 'index', v_at - 1,
        'bytes', pg_column_size(v_spec), 'max_bytes', p_max_bytes
      ),
      'Store the data elsewhere and pass a reference, or raise max_spec_bytes of the queue.',
      'TR002'
    );
  elsif not jsonb_path_exists(v_spec, '$.**{65}') then
    perform treadle.refuse(
      'the spec has numbers that are too long to be sent',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass them as text, or keep them within 1e300.'
    );
  else
    perform treadle.refuse(
      'the spec is nested more than 64 levels deep',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Flatten it, or pass the deep part as text.'
    );
  end if;
end;
$$;

comment on function treadle.check_specs(jsonb[], integer) is
'Internal: refuses payloads that are malformed, too large or too deep.';

revoke all on function treadle.check_specs(jsonb[], integer) from public;
