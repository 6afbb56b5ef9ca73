-- pause_type: stop claims of a type; running tasks go on, and tasks can still be enqueued.
--
-- select treadle.pause_type('deploy', 'the cluster is being moved');
--
-- Concurrency: a claim in progress may still take tasks.
-- Lock order:  task_types.
-- Raises:      TR203 unknown type.

create or replace function treadle.pause_type(
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
begin
  update treadle.task_types
  set
    paused_at = coalesce(task_types.paused_at, treadle.clock()),
    paused_by = coalesce(p_actor, session_user),
    paused_reason = coalesce(p_reason, task_types.paused_reason)
  where task_types.name = p_name;
  if not found then
    perform treadle.check_names('default', p_name);
  end if;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'type.paused', coalesce(p_actor, session_user),
    jsonb_build_object('type', p_name, 'reason', p_reason)
  );
end;
$$;

comment on function treadle.pause_type(text, text, text) is
'Stop claims of a type.';

-- resume_type: resume a paused type and notify waiting workers.
--
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
  perform treadle.notify_gate_queues(array['type:' || p_name]);
end;
$$;

comment on function treadle.resume_type(text, text) is
'Resume a paused type.';

grant execute on function treadle.pause_type(text, text, text) to treadle_operator;
grant execute on function treadle.resume_type(text, text) to treadle_operator;
