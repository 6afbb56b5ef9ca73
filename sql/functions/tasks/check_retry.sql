-- check_retry: refuse a retry policy that could not be followed.
--
-- Concurrency: none.
-- Lock order:  none.
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
    perform treadle.refuse(
      'a retry policy must be a json object',
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
      perform treadle.refuse(
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

comment on function treadle.check_retry(jsonb) is 'Internal: refuses a malformed retry policy.';

revoke all on function treadle.check_retry(jsonb) from public;
