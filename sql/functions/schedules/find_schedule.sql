-- find_schedule: the schedule of this name, locked.
--
-- Concurrency: waits for who deals with it now.
-- Lock order:  schedules.
-- Raises:      TR211 unknown schedule.

create or replace function treadle.find_schedule(p_name text)
returns treadle.schedules
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules;
begin
  select schedules.* into v_schedule
  from treadle.schedules
  where schedules.name = p_name
  for no key update;
  if v_schedule.id is null then
    perform treadle.refuse(
      format('there is no schedule %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('schedule', left(p_name, 200)),
      format(
        'Known: %s. List them: select name from treadle.schedule_status',
        coalesce(
          (
            select string_agg(known.name, ', ')
            from (select schedules.name from treadle.schedules order by 1 limit 10) as known
          ),
          'none'
        )
      ),
      'TR211'
    );
  end if;
  return v_schedule;
end;
$$;

comment on function treadle.find_schedule(text) is
'Internal: locks a schedule by its name and returns it.';

revoke all on function treadle.find_schedule(text) from public;
