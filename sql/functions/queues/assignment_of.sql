-- assignment_of: return how tasks of a queue reach their agents: claim, manual or dispatch.
--
-- For a queue that does not exist yet, the result follows from its name.

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
