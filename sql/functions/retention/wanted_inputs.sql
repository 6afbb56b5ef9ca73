-- wanted_inputs: tasks whose output or file is an input of one that may still run.
--
-- Only of those that have no edge to it: forks, and readers of artifacts. The others are found by
-- their edges.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wanted_inputs(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  c_id     constant text := '^(?:task|artifact):'
    || '([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})';
  v_wanted uuid[] := array(
    select distinct (regexp_match(inputs.value, c_id))[1]::uuid
    from treadle.tasks
    cross join lateral jsonb_each_text(tasks.inputs) as inputs
    where
      tasks.inputs is not null and tasks.status not in ('completed', 'cancelled')
      and (tasks.forked_from is not null or tasks.inputs::text like '%artifact:%')
      and tasks.id <> all (p_ids)
      and inputs.value ~ c_id
  );
begin
  if v_wanted = '{}' then
    return v_wanted;
  end if;
  return array(
    select given.id from unnest(p_ids) as given (id) where given.id = any (v_wanted)
    union
    select artifacts.task_id
    from treadle.artifacts
    where artifacts.id = any (v_wanted) and artifacts.task_id = any (p_ids)
  );
end;
$$;

comment on function treadle.wanted_inputs(uuid[]) is
'Internal: tasks that the inputs of others name.';

revoke all on function treadle.wanted_inputs(uuid[]) from public;
