-- read_events: read the events after a cursor, in an order in which none is missed.
--
-- select * from treadle.read_events(null);            -- the current end, to read later events
-- select * from treadle.read_events('0.0');           -- from the beginning
-- select * from treadle.read_events('8123.77', array['dag.completed']);
--
-- The last row has the cursor to continue from and may be an event that was not asked for (wanted
-- is false). Without events there is one row that has only the cursor.
--
-- Concurrency: reads only; see next_events.
-- Raises:      TR001 invalid argument.

-- stable_xid: return the transaction id before which no more events can be written.
--
-- This is the oldest transaction open in this database, or the next one if none is open.
-- Transactions of other databases do not count; each holds a lock in its own database. A
-- transaction without any lock yet is waited for. The locks are read after the snapshot is taken,
-- so that a transaction that ended in between is waited for as well.
--
-- Concurrency: reads only; the result never decreases.
create or replace function treadle.stable_xid()
returns xid8
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select least(
    -- A snapshot does not list the transaction that took it.
    pg_current_xact_id_if_assigned(),
    (
      select opened.xid
      from pg_snapshot_xip(pg_current_snapshot()) as opened (xid)
      where opened.xid::xid <> all (array(
        select held.transactionid
        from pg_catalog.pg_locks as held
        inner join pg_catalog.pg_locks as beside
          on held.virtualtransaction = beside.virtualtransaction
        where
          held.locktype = 'transactionid'
          -- Its own lock; sessions that wait for it have another mode.
          and held.mode = 'ExclusiveLock'
          and beside.database <> 0
          and beside.database <> (
            select databases.oid
            from pg_catalog.pg_database as databases
            where databases.datname = current_database()
          )
      ))
      order by opened.xid
      limit 1
    ),
    pg_snapshot_xmax(pg_current_snapshot())
  )
$$;

-- next_events: return events after a cursor in their final order, as far as it is certain.
--
-- Events of transactions that began after one that is still running are not returned yet, because
-- that one could write events that sort before them. A long transaction delays readers but loses no
-- events; see stable_xid.
--
-- Concurrency: reads only; a reader locks its own cursor first.
create or replace function treadle.next_events(p_xid xid8, p_id bigint, p_limit integer)
returns setof treadle.events
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select events.*
  from treadle.events
  where
    (events.xid, events.id) > (p_xid, p_id)
    and events.xid < (select treadle.stable_xid())
  order by events.xid, events.id
  limit p_limit
$$;

create or replace function treadle.read_events(
  p_after  text,
  p_kinds  text[] default null,
  p_limit  integer default 500
)
returns table (
  wanted boolean, place text, id bigint, at timestamptz, kind text, task_id uuid, dag_id uuid,
  queue text, actor text, key text, data jsonb
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if p_after !~ '^[0-9]{1,19}[.][0-9]{1,18}$' or not coalesce(p_limit between 1 and 10000, false)
  then
    perform treadle.raise_error(
      format('%s is not a valid event cursor', left(quote_nullable(p_after), 60)),
      jsonb_build_object('argument', case when p_limit between 1 and 10000 then 'after' end),
      'Pass the cursor of an event that you have read, or 0.0; the limit is 1 to 10000.'
    );
  end if;

  return query
  select
    coalesce(next.kind = any (p_kinds), p_kinds is null), format('%s.%s', next.xid, next.id),
    next.id, next.at, next.kind, next.task_id, next.dag_id, next.queue, next.actor, next.key,
    next.data
  from (
    select found.*, lead(found.id) over (order by found.xid, found.id) is null as last
    from treadle.next_events(
      split_part(p_after, '.', 1)::xid8, split_part(p_after, '.', 2)::bigint, p_limit
    ) as found
  ) as next
  where next.last or p_kinds is null or next.kind = any (p_kinds)
  order by next.xid, next.id;
  if not found then
    wanted := false;
    place := coalesce(p_after, treadle.stable_xid() || '.0');
    return next;
  end if;
end;
$$;

comment on function treadle.read_events(text, text[], integer) is
'Events after a cursor, in a stable order; the last row has the cursor to continue from.';

grant execute on function treadle.read_events(text, text[], integer) to
treadle_observer, treadle_operator;
