-- downstream_of: all that would fall if these tasks were cancelled, they themselves included.
--
-- Their dependents over edges that are not optional, their subtasks, and so on down.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.downstream_of(p_ids uuid[])
returns uuid[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with recursive falling as (
    select tasks.id
    from treadle.tasks
    where tasks.id = any (p_ids) and tasks.completed_at is null
    union
    select following.id
    from falling
    cross join lateral (
      select dependencies.task_id as id
      from treadle.dependencies
      where
        dependencies.depends_on = falling.id
        and dependencies.met_at is null
        and not dependencies.optional
      union all
      select tasks.id
      from treadle.tasks
      where tasks.parent_id = falling.id and tasks.completed_at is null
    ) as following
  )

  select array(select falling.id from falling)
$$;

comment on function treadle.downstream_of(uuid[]) is
'Internal: the tasks that a cancellation of these takes along.';

revoke all on function treadle.downstream_of(uuid[]) from public;
