-- send_event: store an event and hand it to every task that waits for it.
--
-- A task with two waits for it takes it once, for the older one.
--
-- Concurrency: see lock_waiting.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      object_in_use, to begin again.

create or replace function treadle.send_event(
  p_event      text,
  p_payload    jsonb,
  p_key        text,
  p_dedup_key  text,
  p_actor      text,
  p_last       boolean,
  p_task       uuid default null
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_event treadle.events;
  v_tasks uuid[];
begin
  perform treadle.lock_waiting(p_event, p_key, p_last);
  insert into treadle.events (at, kind, task_id, key, dedup_key, actor, data)
  values (treadle.clock(), p_event, p_task, p_key, p_dedup_key, p_actor, p_payload)
  on conflict (kind, dedup_key) where dedup_key is not null do nothing
  returning events.* into v_event;
  if not found then
    -- Emitted at the same moment by somebody else.
    return treadle.emitted(p_event, p_dedup_key);
  end if;

  perform treadle.touch_topic(p_event, p_key, v_event.id);
  with taken as (
    select treadle.take_event(oldest, v_event) as wait
    from (
      select distinct on (waits.task_id) waits.*
      from treadle.waits
      where waits.status = 'open' and waits.event = p_event and waits.event_key = p_key
      order by waits.task_id, waits.opened_at, waits.id
    ) as oldest
  )

  select array_agg((taken.wait).task_id) into v_tasks from taken;
  perform treadle.resume_tasks(v_tasks) where v_tasks is not null;
  return v_event.id;
end;
$$;

comment on function treadle.send_event(text, jsonb, text, text, text, boolean, uuid) is
'Internal: one try to emit an event.';

revoke all on function treadle.send_event(text, jsonb, text, text, text, boolean, uuid) from public;
