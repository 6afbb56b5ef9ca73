-- settled_before: the transaction before which no event can be written any more.
--
-- The oldest that is open in this database, or else the next one. Those of other databases cannot
-- write here: each holds a lock on something of its own. One that holds none yet is waited for.
-- The locks are looked at after the snapshot was taken, so that one that ended since is waited for.
--
-- Concurrency: reads; the answer only ever grows.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.settled_before()
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
          -- Its own; those who wait for it have another.
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

comment on function treadle.settled_before() is
'Internal: events of older transactions are all there; readers go no further.';

revoke all on function treadle.settled_before() from public;
