-- pinned_tasks: those of a set that must stay, if nothing but the set goes.
--
-- A task stays for another that is not of the set: for one that depends on it or refers to it and
-- may still run, for its children, for its parent unless that has completed for good, and for the
-- rest of its DAG. It stays also with a question or money of its own that is open, and until every
-- reader has its events.
--
-- Concurrency: reads; exact where the caller holds the set.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.pinned_tasks(p_ids uuid[])
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
  v_dags uuid[] := array(
    select distinct tasks.dag_id
    from treadle.tasks
    where tasks.id = any (p_ids) and tasks.dag_id is not null
  );
begin
  return array(
    select dependencies.depends_on
    from treadle.dependencies
    inner join treadle.tasks on dependencies.task_id = tasks.id
    where
      dependencies.depends_on = any (p_ids)
      and dependencies.task_id <> all (p_ids)
      and tasks.status <> 'completed'
    union
    select children.parent_id
    from treadle.tasks as children
    where children.parent_id = any (p_ids) and children.id <> all (p_ids)
    union
    select tasks.id
    from treadle.tasks
    inner join treadle.tasks as parents on tasks.parent_id = parents.id
    where
      tasks.id = any (p_ids) and parents.id <> all (p_ids) and parents.status <> 'completed'
    union
    select tasks.id
    from treadle.tasks
    where
      tasks.id = any (p_ids)
      and tasks.dag_id = any (
        array(
          select rest.dag_id
          from treadle.tasks as rest
          where rest.dag_id = any (v_dags) and rest.id <> all (p_ids)
          union
          select dags.id
          from treadle.dags
          where dags.id = any (v_dags) and dags.ended_at is null
        )
      )
    union
    select waits.task_id
    from treadle.waits
    where waits.task_id = any (p_ids) and waits.status = 'open'
    union
    select reservations.task_id
    from treadle.reservations
    where reservations.task_id = any (p_ids)
    union
    select wanted.id
    from unnest(
      treadle.wanted_inputs(p_ids) || treadle.wanted_origins(p_ids)
      || treadle.unread_tasks(p_ids, v_dags)
    ) as wanted (id)
  );
end;
$$;

comment on function treadle.pinned_tasks(uuid[]) is
'Internal: finished tasks that others still need.';

revoke all on function treadle.pinned_tasks(uuid[]) from public;
