-- retry_fires: try again what met a full queue, oldest first; of those still full nothing is said.
--
-- Where the queue is full again the rest of that trigger waits too. What can no longer be tried, of
-- a trigger that rests or was changed, is a failure.
--
-- Concurrency: the caller holds the place among the events: one session at a time.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40xxx, 53xxx, 55P03, 57xxx.

create or replace function treadle.retry_fires(p_now timestamptz)
returns treadle.trigger_fires[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_most  constant integer := 100;
  v_wait  record;
  v_full  uuid[] := '{}';
  v_fire  treadle.trigger_fires;
  v_fires treadle.trigger_fires[] := '{}';
begin
  for v_wait in
    select triggers as cause, event, fire
    from treadle.triggers
    cross join lateral (
      select fires as fire
      from treadle.trigger_fires as fires
      where fires.trigger_id = triggers.id and fires.verdict = 'waiting'
      order by fires.event_id
      limit c_most
    ) as waiting
    left join treadle.events as event on (waiting.fire).event_id = event.id
    order by triggers.id, (waiting.fire).event_id
  loop
    continue when (v_wait.cause).id = any (v_full);
    v_fire := null;
    if (v_wait.cause).paused_at is null and (v_wait.cause).on_event = (v_wait.event).kind then
      v_fire := treadle.try_fire(v_wait.cause, v_wait.event, p_now);
    end if;
    if v_fire.verdict is null then
      v_fire := v_wait.fire;
      v_fire.verdict := 'failed';
      v_fire := treadle.keep_fire(v_fire);
    end if;
    if v_fire.verdict = 'waiting' then
      v_full := v_full || v_fire.trigger_id;
    else
      v_fires := v_fires || v_fire;
    end if;
  end loop;
  return v_fires;
end;
$$;

comment on function treadle.retry_fires(timestamptz) is
'Internal: what triggers make of events that met a full queue.';

revoke all on function treadle.retry_fires(timestamptz) from public;
