-- prune_events: delete events that are old enough and that every reader has read.
--
-- select * from treadle.prune_events(0, 1000, treadle.oldest_open_at());
--
-- An emitted event is kept longer while an older task is open, because that task may still wait for
-- it. It looks at p_limit events after p_after and returns in place where to continue; null at the
-- end. A deduplication key can be used again once its event is deleted.
--
-- Concurrency: topics that are locked are kept.
-- Lock order:  topics, then the history.

-- slowest_reader: return the cursor that every reader has passed; the newest event if there is no
-- reader.
--
-- Triggers read only while one of them is active, see ensure_trigger_reader; otherwise they delay
-- nothing.
-- An event on which a trigger is to be retried does not count as read.
--
-- Concurrency: reads only; a cursor never moves backwards.
create or replace function treadle.slowest_reader()
returns treadle.event_readers
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  with places as (
    select event_readers.*
    from treadle.event_readers
    union all
    select 'triggers', events.xid, events.id - 1, events.at
    from treadle.trigger_fires as fires
    inner join treadle.events on fires.event_id = events.id
    where fires.verdict = 'waiting'
    union all
    select 'nobody', '18446744073709551615'::xid8, 9223372036854775807, 'infinity'
  )

  select places.*
  from places
  where
    places.name <> 'triggers'
    or exists (select from treadle.triggers where triggers.paused_at is null)
  order by places.xid, places.id
  limit 1
$$;

create or replace function treadle.prune_events(
  p_after       bigint default 0,
  p_limit       integer default 1000,
  p_open_since  timestamptz default null,
  out place bigint,
  out pruned integer
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_before timestamptz := treadle.retention_cutoff('events');
  v_read   treadle.event_readers := treadle.slowest_reader();
  v_gone   bigint[];
  v_seen   integer;
  v_last   timestamptz;
begin
  pruned := 0;
  if v_before is null then
    return;
  end if;
  select
    max(seen.id), count(*), max(seen.at),
    coalesce(array_agg(seen.id) filter (where seen.goes), '{}')
  into place, v_seen, v_last, v_gone
  from (
    select
      events.id, events.at,
      events.at <= v_before
      and (events.xid, events.id) <= (v_read.xid, v_read.id)
      and events.xid < pg_snapshot_xmin(pg_current_snapshot())
      and (events.key is null or coalesce(events.at < p_open_since, false)) as goes
    from treadle.events
    where events.id > p_after
    order by events.id
    limit p_limit
  ) as seen;

  delete from treadle.topics
  where (topics.event, topics.key) in (
    select held.event, held.key
    from treadle.topics as held
    inner join treadle.events on held.event = events.kind and held.key = events.key
    where events.id = any (v_gone) and events.key is not null and held.event_id = events.id
    for update of held skip locked
  );
  delete from treadle.events where events.id = any (v_gone);
  get diagnostics pruned = row_count;
  -- Ids and times correlate well enough: events missed here are found next time.
  if v_seen < p_limit or v_last > v_before then
    place := null;
  end if;
end;
$$;

comment on function treadle.prune_events(bigint, integer, timestamptz) is
'Delete events whose retention is over, once all readers have read them.';

grant execute on function treadle.prune_events(bigint, integer, timestamptz) to treadle_worker;
