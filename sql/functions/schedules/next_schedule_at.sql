-- next_schedule_at: return when a schedule or a trigger retry is due next; null if nothing is.

create or replace function treadle.next_schedule_at()
returns timestamptz
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when exists (
        select from treadle.schedules
        where schedules.paused_at is null and schedules.next_at is null
      ) then treadle.clock()
      else (
        select min(schedules.next_at)
        from treadle.schedules
        where schedules.paused_at is null and schedules.next_at < 'infinity'
      )
    end
$$;

comment on function treadle.next_schedule_at() is 'The next time at which a schedule is due.';

grant execute on function treadle.next_schedule_at() to treadle_worker;
