-- resume_trigger: let a paused trigger fire again, on what happens from now on.
--
-- Concurrency: one row.
-- Lock order:  event_readers, triggers.
-- Raises:      TR212 unknown trigger.

create or replace function treadle.resume_trigger(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers;
begin
  perform treadle.begin_reading();
  v_trigger := treadle.trigger_named(p_name);
  if v_trigger.paused_at is null then
    return;
  end if;
  update treadle.triggers
  set active_at = treadle.clock(), paused_at = null, paused_by = null, paused_reason = null
  where triggers.id = v_trigger.id;
  insert into treadle.events (at, kind, actor, key)
  values (treadle.clock(), 'trigger.resumed', coalesce(p_actor, session_user), p_name);
end;
$$;

comment on function treadle.resume_trigger(text, text) is
'Let a trigger fire again; what happened while it rested is not made up for.';

revoke all on function treadle.resume_trigger(text, text) from public;
grant execute on function treadle.resume_trigger(text, text) to treadle_operator;
