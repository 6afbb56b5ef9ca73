-- run_plan: which of the times that have come get work, by the catch-up policy of the schedule.
--
-- A time is missed when nobody came to it within grace_s. Policy all: each gets its work, in order.
-- One: if there is a missed one, the last of all stands for them. Skip: the missed ones get none,
-- the others each. Times without work are one row: from the first to the last of them.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.run_plan(
  p_schedule  treadle.schedules,
  p_due       timestamptz[],
  p_now       timestamptz
)
returns table (nominal_at timestamptz, missed boolean, missed_until timestamptz)
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  with due as (
    select
      given.at,
      case p_schedule.catch_up
        when 'all' then false
        when 'skip' then given.at < grace.since
        else given.at < p_due[cardinality(p_due)] and p_due[1] < grace.since
      end as missed
    from unnest(p_due) as given (at)
    cross join (select p_now - make_interval(secs => p_schedule.grace_s) as since) as grace
  )
  select due.at, false, null::timestamptz from due where not due.missed
  union all
  select min(due.at), true, max(due.at) from due where due.missed having count(*) > 0
$$;

comment on function treadle.run_plan(treadle.schedules, timestamptz[], timestamptz) is
'Internal: what is done about each of the times that have come.';

revoke all on function treadle.run_plan(treadle.schedules, timestamptz[], timestamptz) from public;
