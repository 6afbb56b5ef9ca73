-- mark_schedule_invalid: stop a schedule whose cron line or time zone the scheduler cannot parse.
--
-- It stays stopped until it is changed. Returns false if it has changed already.
--
-- Concurrency: one row; compares the revision like fire_schedule.
-- Lock order:  schedules, then the history.

create or replace function treadle.mark_schedule_invalid(
  p_id        uuid,
  p_revision  bigint,
  p_problem   text
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  update treadle.schedules
  set next_at = 'infinity', last_status = 'failed', last_error = left(p_problem, 2000)
  where
    schedules.id = p_id and schedules.revision = p_revision
    and schedules.next_at is distinct from 'infinity'
  returning schedules.name into v_name;
  if v_name is null then
    return false;
  end if;
  insert into treadle.events (at, kind, data)
  values (
    treadle.clock(), 'schedule.failed',
    jsonb_build_object('schedule', v_name, 'status', 'failed', 'error', left(p_problem, 2000))
  );
  return true;
end;
$$;

comment on function treadle.mark_schedule_invalid(uuid, bigint, text) is
'Stop a schedule whose cron line or time zone is invalid, with the reason.';

grant execute on function treadle.mark_schedule_invalid(uuid, bigint, text) to treadle_worker;
