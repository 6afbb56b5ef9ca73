-- fire_triggers: enqueue what follows from new events.
--
-- A trigger that cannot fire does not stop the others: it is in the answer with its problem, on its
-- row, and among the events. What met a full queue comes first, see retry_fires.
--
-- Concurrency: one session reads at a time, and others return at once. The place among the events
--              moves in the transaction that enqueues: each event counts exactly once. What other
--              transactions have not committed yet is waited for, and never passed by.
-- Lock order:  event_readers (never waited for), tasks, lanes, dags, triggers, then the history.
-- Raises:      nothing.

create or replace function treadle.fire_triggers(p_limit integer default 500)
returns table (id uuid, event_id bigint, task_id uuid, dag_id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_rounds constant integer := 20;
  v_now    timestamptz := treadle.clock();
  v_place  treadle.event_readers;
  v_events treadle.events[];
  v_fires  treadle.trigger_fires[];
begin
  if not exists (select from treadle.triggers where triggers.paused_at is null) then
    return;
  end if;
  select event_readers.*
  into v_place
  from treadle.event_readers
  where event_readers.name = 'triggers'
  for update skip locked;
  if not found then
    return;
  end if;
  perform treadle.keep_durable();
  perform treadle.tend_triggers();
  v_fires := treadle.retry_fires(v_now);

  for v_round in 1..c_rounds loop
    v_events := array(
      select next from treadle.next_events(v_place.xid, v_place.id, p_limit) as next
    );
    exit when v_events = '{}';
    v_fires := v_fires || treadle.fire_events(v_events, v_now);
    v_place.xid := v_events[cardinality(v_events)].xid;
    v_place.id := v_events[cardinality(v_events)].id;
    exit when cardinality(v_fires) >= p_limit or cardinality(v_events) < p_limit;
  end loop;

  perform treadle.note_fires(v_fires, v_now);
  update treadle.event_readers
  set xid = v_place.xid, id = v_place.id, read_at = v_now
  where
    event_readers.name = 'triggers'
    and (event_readers.xid, event_readers.id) is distinct from (v_place.xid, v_place.id);
  return query
  select fire.trigger_id, fire.event_id, fire.task_id, fire.dag_id, fire.problem
  from unnest(v_fires) as fire;
end;
$$;

comment on function treadle.fire_triggers(integer) is
'Enqueue tasks and DAGs for new events; says of each trigger that fired what it made.';

revoke all on function treadle.fire_triggers(integer) from public;
grant execute on function treadle.fire_triggers(integer) to treadle_worker;
