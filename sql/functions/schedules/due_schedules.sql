-- due_schedules: list schedules that are due, and those whose next time is not computed yet.
--
-- Cron lines are parsed outside the database: the scheduler computes the times and proposes them to
-- fire_schedule, which decides.
--
-- Concurrency: reads only; several schedulers may get the same result.

create or replace function treadle.due_schedules(
  p_limit  integer default 500,
  p_skip   uuid[] default '{}'
)
returns table (
  id uuid,
  name text,
  cron text,
  timezone text,
  catch_up text,
  grace_s integer,
  revision bigint,
  from_at timestamptz,
  next_at timestamptz,
  now timestamptz
)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    schedules.id, schedules.name, schedules.cron, schedules.timezone, schedules.catch_up,
    schedules.grace_s, schedules.revision, schedules.from_at, schedules.next_at, moment.now
  from (select treadle.clock() as now offset 0) as moment
  cross join treadle.schedules
  where
    schedules.paused_at is null
    and (schedules.next_at is null or schedules.next_at <= moment.now)
    and schedules.id <> all (p_skip)
  order by schedules.next_at nulls first
  limit p_limit
$$;

comment on function treadle.due_schedules(integer, uuid[]) is
'Schedules that are due, with what is needed to compute their times.';

grant execute on function treadle.due_schedules(integer, uuid[]) to treadle_worker;
