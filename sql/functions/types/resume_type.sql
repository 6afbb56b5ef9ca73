-- resume_type: let a paused type go on, and wake who waits for it.
--
-- Concurrency: one row.
-- Lock order:  task_types.
-- Raises:      TR203 unknown type.

create or replace function treadle.resume_type(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.task_types
  set paused_at = null, paused_by = null, paused_reason = null
  where task_types.name = p_name;
  if not found then
    perform treadle.check_names('default', p_name);
  end if;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'type.resumed', coalesce(p_actor, session_user),
    jsonb_build_object('type', p_name)
  );
  perform treadle.wake_gates(array['type:' || p_name]);
end;
$$;

comment on function treadle.resume_type(text, text) is
'Let a paused type go on.';

revoke all on function treadle.resume_type(text, text) from public;
grant execute on function treadle.resume_type(text, text) to treadle_operator;
