-- gate_of: the gate that a rate limit of a task closes.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.gate_of(p_task treadle.tasks, p_key text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select p_key where p_key = any (lanes.gates)),
    (
      select named.key
      from unnest(
        coalesce(nullif(p_task.gates, '{}'), task_types.gates)
      ) with ordinality as named (key, at)
      where named.key = any (lanes.gates)
      order by named.at
      limit 1
    ),
    'type:' || p_task.type
  )
  from treadle.lanes
  inner join treadle.task_types on lanes.type = task_types.name
  where lanes.id = p_task.lane_id
$$;

comment on function treadle.gate_of(treadle.tasks, text) is
'Internal: the key that was named, if it is one of its own; else its first; else that of its type.';

revoke all on function treadle.gate_of(treadle.tasks, text) from public;
