-- remove_schedule: remove a schedule; its tasks and the record of its runs stay.
--
-- Concurrency: one row; a scheduler that fires it now comes first.
-- Lock order:  schedules, then the history.
-- Raises:      TR211 unknown schedule.

create or replace function treadle.remove_schedule(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules := treadle.find_schedule(p_name);
begin
  delete from treadle.schedules where schedules.id = v_schedule.id;
  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'schedule.removed', coalesce(p_actor, session_user),
    jsonb_build_object('schedule', p_name, 'cron', v_schedule.cron)
  );
end;
$$;

comment on function treadle.remove_schedule(text, text) is
'Remove a schedule; the tasks that it created stay.';

grant execute on function treadle.remove_schedule(text, text) to treadle_operator;
