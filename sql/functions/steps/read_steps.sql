-- read_steps: all that a task has done, in order, for the claim that goes on with it.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.read_steps(p_id uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'name', steps.name,
        'seq', steps.seq,
        'kind', steps.kind,
        'output', steps.output,
        'input_hash', steps.input_hash,
        'input', steps.input,
        'saved_at', steps.saved_at,
        'cost_usd', steps.cost_usd
      )
      order by steps.seq
    )
  from treadle.steps
  where steps.task_id = p_id
$$;

comment on function treadle.read_steps(uuid) is
'Internal: the steps of a task as json, in the order in which they were saved; null for none.';

revoke all on function treadle.read_steps(uuid) from public;
