-- prune_events: delete events that are old enough and that every reader has.
--
-- select * from treadle.prune_events(0, 1000, treadle.oldest_open_at());
--
-- An emitted event is kept longer while a task is open that was made before it: that one may still
-- wait for it. It looks at p_limit events after p_after; place is where to go on, null at the end.
-- A key that said "only once" may be used again once its event is gone.
--
-- Concurrency: a topic that somebody holds stays.
-- Lock order:  topics, then the history.

-- read_by_all: how far every reader of the events has come; the last place where there is none.
--
-- Triggers read only while one of them is active, see begin_reading; until then they hold nothing
-- up. An event on which one of them is to be tried again is not read yet.
--
-- Concurrency: reads; a reader only ever goes on.
create or replace function treadle.read_by_all()
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
  v_before timestamptz := treadle.old_before('events');
  v_read   treadle.event_readers := treadle.read_by_all();
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
  -- Numbers and times go together closely enough: what is left here is found the next time.
  if v_seen < p_limit or v_last > v_before then
    place := null;
  end if;
end;
$$;

comment on function treadle.prune_events(bigint, integer, timestamptz) is
'Delete events that are older than they are kept, once all readers have them.';

grant execute on function treadle.prune_events(bigint, integer, timestamptz) to treadle_worker;
