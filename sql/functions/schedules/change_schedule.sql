-- change_schedule: store a schedule that was made or changed, tell the schedulers and the events.
--
-- What a scheduler has worked out before is void: the revision is another one.
--
-- Concurrency: the caller holds the row.
-- Lock order:  schedules, then the history.
-- Raises:      check violations of values out of range.

create or replace function treadle.change_schedule(
  p_schedule  treadle.schedules,
  p_kind      text,
  p_actor     text,
  p_data      jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.schedules
  set
    cron = p_schedule.cron,
    timezone = p_schedule.timezone,
    template = p_schedule.template,
    jitter_s = p_schedule.jitter_s,
    catch_up = p_schedule.catch_up,
    overlap = p_schedule.overlap,
    grace_s = p_schedule.grace_s,
    revision = schedules.revision + 1,
    from_at = p_schedule.from_at,
    next_at = p_schedule.next_at,
    last_status = p_schedule.last_status,
    last_error = p_schedule.last_error,
    paused_at = p_schedule.paused_at,
    paused_by = p_schedule.paused_by,
    paused_reason = p_schedule.paused_reason,
    declared = p_schedule.declared,
    updated_at = treadle.clock()
  where schedules.id = p_schedule.id;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), p_kind, coalesce(p_actor, session_user),
    jsonb_build_object('schedule', p_schedule.name) || p_data
  );
  perform pg_notify('schedule_due', '');
end;
$$;

comment on function treadle.change_schedule(treadle.schedules, text, text, jsonb) is
'Internal: writes a changed schedule.';

revoke all on function treadle.change_schedule(treadle.schedules, text, text, jsonb) from public;
