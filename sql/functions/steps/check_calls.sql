-- check_calls: refuse paid calls whose cost cannot be counted.
--
-- Numbers may come as text: some languages write exact decimals that way.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_calls(p_calls jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_keys   constant text[] := array['call_id', 'usd', 'model', 'input_tokens', 'output_tokens'];
  c_number constant text := '^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$';
  v_at     bigint;
  v_call   jsonb;
  v_wrong  text;
begin
  if jsonb_typeof(p_calls) is distinct from 'array' then
    v_wrong := 'the calls must be a json array';
  else
    for v_at, v_call in
      select given.at - 1, jsonb_strip_nulls(given.call)
      from jsonb_array_elements(p_calls) with ordinality as given (call, at)
    loop
      v_wrong := case
        when jsonb_typeof(v_call) <> 'object' then 'must be a json object'
        when (v_call - c_keys) <> '{}'
          then format(
            'has the unknown key %s',
            (
              select quote_literal(treadle.excerpt_name(min(keys.name)))
              from jsonb_object_keys(v_call - c_keys) as keys (name)
            )
          )
        when not v_call ?| array['usd', 'input_tokens', 'output_tokens'] then 'has no usd'
        when v_call ->> 'usd' !~ c_number
          then format('has a usd of %s, not a number from 0 up', treadle.excerpt(v_call -> 'usd'))
        when (v_call ->> 'usd')::numeric > 1000000
          then format('has a usd of %s, over a million', treadle.excerpt(v_call -> 'usd'))
        when exists (
          select from jsonb_each(v_call) as part
          where
            part.key in ('input_tokens', 'output_tokens')
            and not (
              jsonb_typeof(part.value) = 'number'
              and part.value::text ~ '^[0-9]{1,12}$'
            )
        ) then 'has tokens that are not a whole number of 0 to 999999999999'
        when exists (
          select from jsonb_each(v_call) as part
          where
            part.key in ('call_id', 'model')
            and not (
              jsonb_typeof(part.value) = 'string'
              and octet_length(part.value #>> '{}') between 1 and 200
            )
        ) then 'has a call_id or model that is not a text of 1 to 200 bytes'
      end;
      if v_wrong is not null then
        v_wrong := format('call %s %s', v_at, v_wrong);
        exit;
      end if;
    end loop;
  end if;

  if v_wrong is not null then
    perform treadle.refuse(
      v_wrong,
      jsonb_build_object('argument', 'calls', 'index', v_at),
      'A call is {"call_id": "...", "usd": 0.01, "model": "...", "input_tokens": 900, '
      '"output_tokens": 100}; tokens or usd must be there.'
    );
  end if;
end;
$$;

comment on function treadle.check_calls(jsonb) is
'Internal: refuses a list of paid calls with costs or tokens that are no sums of money or counts.';

revoke all on function treadle.check_calls(jsonb) from public;
