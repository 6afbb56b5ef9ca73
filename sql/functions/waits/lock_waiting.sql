-- lock_waiting: lock the tasks that wait for an event, then its topic.
--
-- A task that began to wait between the two is locked last, out of order, and so without waiting:
-- whoever holds it may be waiting for the topic. When that fails, object_in_use is raised, and the
-- caller gives up what it locked and begins again; the last time it waits after all.
--
-- Concurrency: once it returns, no task begins to wait for this event.
-- Lock order:  tasks, by id; topics.
-- Raises:      object_in_use, to begin again.

create or replace function treadle.lock_waiting(p_event text, p_key text, p_last boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_tasks uuid[] := treadle.waiting_for(p_event, p_key);
  v_late  uuid[];
begin
  perform treadle.lock_tasks(v_tasks);
  perform treadle.touch_topic(p_event, p_key);
  v_late := array(
    select late.id from unnest(treadle.waiting_for(p_event, p_key)) as late (id)
    where late.id <> all (v_tasks)
  );

  if p_last then
    perform treadle.lock_tasks(v_late);
  elsif cardinality(v_late) > cardinality(array(
    select tasks.id from treadle.tasks
    where tasks.id = any (v_late)
    for no key update skip locked
  )) then
    raise object_in_use using message = 'a task that began to wait just now is locked';
  end if;
end;
$$;

comment on function treadle.lock_waiting(text, text, boolean) is
'Internal: holds an event and every task that waits for it.';

revoke all on function treadle.lock_waiting(text, text, boolean) from public;
