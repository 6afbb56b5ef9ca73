-- json_problem: why a json value could not be handed to a worker; empty when it can.
--
-- A claim carries inputs and steps. One that could not be sent would fail every claim of its lane,
-- so it must not get in. Size is that of the stored json, out of its compression. Numbers like
-- 1e100000 are short when stored and long when sent.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.json_problem(jsonb, bigint) is
'Internal: the size of a json value, and a few words when it is too large, too deep or too long.';

revoke all on function treadle.json_problem(jsonb, bigint) from public;
