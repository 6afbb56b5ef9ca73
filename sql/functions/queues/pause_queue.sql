-- pause_queue: stop claims from a queue; running tasks go on, and tasks can still be enqueued.
--
-- select treadle.pause_queue('default', 'provider is down');
--
-- Concurrency: a claim in progress may still take tasks.
-- Lock order:  queues.
-- Raises:      TR202 unknown queue.

create or replace function treadle.pause_queue(
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
  update treadle.queues
  set
    paused_at = coalesce(queues.paused_at, treadle.clock()),
    paused_by = coalesce(p_actor, session_user),
    paused_reason = coalesce(p_reason, queues.paused_reason)
  where queues.name = p_name;
  if not found then
    perform treadle.check_names(p_name, null);
  end if;

  insert into treadle.events (at, kind, queue, actor, data)
  values (
    treadle.clock(), 'queue.paused', p_name, coalesce(p_actor, session_user),
    jsonb_build_object('reason', p_reason)
  );
end;
$$;

comment on function treadle.pause_queue(text, text, text) is 'Stop claims from a queue.';

-- resume_queue: resume a paused queue and notify waiting workers.
--
-- Lock order:  queues.
-- Raises:      TR202 unknown queue.
create or replace function treadle.resume_queue(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.queues
  set paused_at = null, paused_by = null, paused_reason = null
  where queues.name = p_name;
  if not found then
    perform treadle.check_names(p_name, null);
  end if;

  insert into treadle.events (at, kind, queue, actor)
  values (treadle.clock(), 'queue.resumed', p_name, coalesce(p_actor, session_user));
  perform treadle.notify_workers(array[p_name]);
end;
$$;

comment on function treadle.resume_queue(text, text) is 'Resume a paused queue.';

grant execute on function treadle.pause_queue(text, text, text) to treadle_operator;
grant execute on function treadle.resume_queue(text, text) to treadle_operator;
