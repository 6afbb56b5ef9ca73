-- unit_of: one task and those of a set that belong to it, over any number of steps.
--
-- Concurrency: reads; the caller holds them.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.unit_of(p_id uuid, p_of uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select kin.id
    from unnest(treadle.kin_of(array[p_id], '{}')) with ordinality as kin (id, at)
    where kin.id = any (p_of)
    order by kin.at
  )
$$;

comment on function treadle.unit_of(uuid, uuid[]) is
'Internal: what has to go with a task, out of what may go.';

revoke all on function treadle.unit_of(uuid, uuid[]) from public;
