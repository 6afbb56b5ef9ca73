-- assignment_of: how tasks of a queue reach their agents: claim, manual or dispatch.
--
-- A queue that is not made yet is what its name will make it.

create or replace function treadle.assignment_of(p_queue text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      (select queues.assignment from treadle.queues where queues.name = p_queue),
      (select preset.assignment from treadle.protocol_queues as preset where preset.name = p_queue),
      'claim'
    )
$$;
