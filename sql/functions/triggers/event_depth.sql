-- event_depth: how many triggers, one after the other, led to an event.
--
-- A task has the depth of the trigger that made it, of its DAG, of the task that spawned it and of
-- the one it was forked from. An event has that of its task and its DAG.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.event_depth(p_event treadle.events)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with recursive line (id, parent_id, forked_from, dag_id, step) as (
    select tasks.id, tasks.parent_id, tasks.forked_from, tasks.dag_id, 1
    from treadle.tasks
    where tasks.id = p_event.task_id
    union
    select tasks.id, tasks.parent_id, tasks.forked_from, tasks.dag_id, line.step + 1
    from line
    inner join treadle.tasks on tasks.id = any (array[line.parent_id, line.forked_from])
    where line.step < 100
  )

  select coalesce(max(trigger_fires.depth), 0)::integer
  from treadle.trigger_fires
  where
    trigger_fires.verdict = 'fired'
    and coalesce(trigger_fires.task_id, trigger_fires.dag_id) = any (
      array[p_event.task_id, p_event.dag_id]
      || array(select line.id from line)
      || array(select line.dag_id from line)
    )
$$;

comment on function treadle.event_depth(treadle.events) is
'Internal: the length of the chain of triggers behind an event.';

revoke all on function treadle.event_depth(treadle.events) from public;
