-- pause_schedule: a schedule makes nothing until it is resumed; what it made runs on.
--
-- select treadle.pause_schedule('nightly', 'the source is down');
--
-- Concurrency: one row; a time that a scheduler deals with at this moment comes first.
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
'Stop a schedule for a while, with a reason that is kept.';

revoke all on function treadle.pause_schedule(text, text, text) from public;
grant execute on function treadle.pause_schedule(text, text, text) to treadle_operator;
