-- rate_problem: what is wrong with a limit for failures; null when it can be used.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.rate_problem(p_rate jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when jsonb_typeof(p_rate) <> 'object' then 'failure_rate must be a json object'
    when p_rate - array['type', 'window_s', 'limit', 'min_attempts'] <> '{}'
      then 'failure_rate has type, window_s, limit and min_attempts, nothing else'
    when jsonb_typeof(p_rate -> 'type') is distinct from 'string'
      then 'failure_rate needs the type of the tasks'
    when not jsonb_path_exists(p_rate, '$ ? (@.window_s >= 60 && @.window_s <= 2592000)')
      then 'window_s must be 60 seconds to 30 days'
    when not jsonb_path_exists(p_rate, '$ ? (@.limit >= 0 && @.limit < 1)')
      then 'limit must be a share of the attempts: 0 or more, below 1'
    when
      p_rate ? 'min_attempts'
      and not jsonb_path_exists(p_rate, '$ ? (@.min_attempts >= 1 && @.min_attempts <= 1000000)')
      then 'min_attempts must be 1 to 1000000'
  end
$$;

comment on function treadle.rate_problem(jsonb) is
'Internal: why a failure_rate cannot be used.';

revoke all on function treadle.rate_problem(jsonb) from public;
