-- pause_schedule: stop a schedule until it is resumed; tasks it has created go on.
--
-- select treadle.pause_schedule('nightly', 'the source is down');
--
-- Concurrency: one row; a scheduler that fires it now comes first.
-- Lock order:  schedules, then the history.
-- Raises:      TR211 unknown schedule.

create or replace function treadle.pause_schedule(
  p_name    text,
  p_reason  text default null,
  p_actor   text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules := treadle.find_schedule(p_name);
begin
  v_schedule.paused_at := coalesce(v_schedule.paused_at, treadle.clock());
  v_schedule.paused_by := coalesce(p_actor, session_user);
  v_schedule.paused_reason := coalesce(p_reason, v_schedule.paused_reason);
  perform treadle.change_schedule(
    v_schedule, 'schedule.paused', p_actor, jsonb_build_object('reason', p_reason)
  );
end;
$$;

comment on function treadle.pause_schedule(text, text, text) is
'Pause a schedule, with a reason.';

-- resume_schedule: resume a paused schedule; its catch-up policy decides about the missed times.
--
-- skip: it continues from now. one: one task for all missed times. all: a task for each. Returns
-- false if it was not paused.
--
-- Lock order:  schedules, then the history.
-- Raises:      TR211 unknown schedule.
create or replace function treadle.resume_schedule(p_name text, p_actor text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules := treadle.find_schedule(p_name);
begin
  if v_schedule.paused_at is null then
    return false;
  end if;
  if v_schedule.catch_up = 'skip' and v_schedule.next_at < 'infinity' then
    v_schedule.next_at := null;
    v_schedule.from_at := treadle.clock();
  end if;
  v_schedule.paused_at := null;
  v_schedule.paused_by := null;
  v_schedule.paused_reason := null;
  perform treadle.change_schedule(v_schedule, 'schedule.resumed', p_actor);
  return true;
end;
$$;

comment on function treadle.resume_schedule(text, text) is 'Resume a paused schedule.';

grant execute on function treadle.pause_schedule(text, text, text) to treadle_operator;
grant execute on function treadle.resume_schedule(text, text) to treadle_operator;
