-- untaken_event: the oldest event since a task was made that it has not taken yet.
--
-- A task takes the events of a topic in their order, so those after the last one are left. They
-- are read from the newest back, and only as far as the task is old.
--
-- Concurrency: the caller holds the task and the topic: no event is added or taken meanwhile.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.untaken_event(
  p_task   treadle.tasks,
  p_event  text,
  p_key    text
)
returns treadle.events
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_taken bigint;
  v_event treadle.events;
  v_found treadle.events;
begin
  select max(waits.event_id)
  into v_taken
  from treadle.waits
  where waits.task_id = p_task.id and waits.event = p_event and waits.event_key = p_key;

  for v_event in
    select events.*
    from treadle.events
    where events.kind = p_event and events.key = p_key and events.id > coalesce(v_taken, 0)
    order by events.id desc
  loop
    exit when v_event.at < p_task.created_at;
    v_found := v_event;
  end loop;
  return v_found;
end;
$$;

comment on function treadle.untaken_event(treadle.tasks, text, text) is
'Internal: the next event for a task that begins to wait; null when it has to wait.';

revoke all on function treadle.untaken_event(treadle.tasks, text, text) from public;
