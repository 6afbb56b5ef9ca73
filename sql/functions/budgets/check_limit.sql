-- check_limit: refuse a limit that is no amount of money, or a period or policy nobody knows.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_limit(
  p_limit         numeric,
  p_period        text,
  p_on_exhausted  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit = 'NaN' or p_limit not between 0 and 99999999 then
    perform treadle.refuse(
      format('limit_usd must be 0 to 99999999 dollars, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit_usd'),
      'To have no limit, remove the budget.'
    );
  elsif p_period not in ('hour', 'day', 'week', 'month') then
    perform treadle.refuse(
      format('period cannot be %L', left(p_period, 60)),
      jsonb_build_object('argument', 'period'),
      'Use hour, day, week or month; without one the budget is for good.'
    );
  elsif p_on_exhausted not in ('ask', 'fail') then
    perform treadle.refuse(
      format('on_exhausted cannot be %L', left(p_on_exhausted, 60)),
      jsonb_build_object('argument', 'on_exhausted'),
      'Use ask or fail.'
    );
  end if;
end;
$$;

comment on function treadle.check_limit(numeric, text, text) is
'Internal: refuses what cannot be the limit of a budget.';

revoke all on function treadle.check_limit(numeric, text, text) from public;
