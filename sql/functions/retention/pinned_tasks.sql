-- pinned_tasks: return the tasks of a set that must be kept if only the set is deleted.
--
-- A task is kept because of a task outside the set: one that depends on it or refers to it and may
-- still run, its children, its parent unless that has completed for good, or the rest of its DAG.
-- It is also kept while it has an open question or reservation, and until every reader has read its
-- events.
--
-- Concurrency: reads only; exact if the caller has locked the set.

-- needed_as_input: return tasks whose output or file is an input of a task that may still run.
--
-- Only for tasks that may have no edge to it: forks, which are in no DAG, and readers of artifacts.
-- The others are found by their edges.
create or replace function treadle.needed_as_input(p_ids uuid[])
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
      and (tasks.dag_id is null or tasks.inputs::text like '%artifact:%')
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

-- needed_by_fork: return tasks whose files the steps of a fork may refer to while that may still
-- run.
--
-- A fork has the steps of its origin, and those of the origin's origin; so a fork in between is
-- kept too, to keep the chain.
create or replace function treadle.needed_by_fork(p_ids uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with recursive heirs as (
    select task_options.forked_from as origin, task_options.task_id as id
    from treadle.task_options
    where task_options.forked_from = any (p_ids)
    union
    select heirs.origin, task_options.task_id
    from heirs
    inner join treadle.task_options on heirs.id = task_options.forked_from
  )

  select array(
    select origins.id
    from heirs
    inner join treadle.tasks as origins on heirs.origin = origins.id
    inner join treadle.tasks as forks on heirs.id = forks.id
    where
      forks.status not in ('completed', 'cancelled')
      and (
        exists (
          select from treadle.task_options
          where task_options.task_id = origins.id and task_options.forked_from is not null
        )
        or exists (
          select from treadle.artifacts
          where artifacts.task_id = origins.id and artifacts.status = 'stored'
        )
      )
  )
$$;

-- unread_tasks: return tasks of a set with events that a reader has not read yet.
--
-- Filters and templates read the task and its DAG, so both are kept until then.
--
-- Concurrency: reads only; a cursor never moves backwards.
create or replace function treadle.unread_tasks(p_ids uuid[], p_dags uuid[])
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
  v_read treadle.event_readers := treadle.slowest_reader();
begin
  if v_read.name = 'nobody' then
    return '{}';
  end if;
  return array(
    -- By task first and then by cursor: there may be many unread events.
    with told as materialized (
      select events.task_id, events.dag_id, events.xid, events.id
      from treadle.events
      where events.task_id = any (p_ids)
      union all
      select events.task_id, events.dag_id, events.xid, events.id
      from treadle.events
      where events.dag_id = any (p_dags) and events.task_id is null
    ),

    unread as materialized (
      select told.task_id, told.dag_id
      from told
      where (told.xid, told.id) > (v_read.xid, v_read.id)
    )

    select unread.task_id
    from unread
    where unread.task_id is not null
    union
    select tasks.id
    from treadle.tasks
    where
      tasks.id = any (p_ids)
      and tasks.dag_id = any (
        array(select unread.dag_id from unread where unread.task_id is null)
      )
  );
end;
$$;

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
      treadle.needed_as_input(p_ids) || treadle.needed_by_fork(p_ids)
      || treadle.unread_tasks(p_ids, v_dags)
    ) as wanted (id)
  );
end;
$$;

-- without_pinned: return the tasks of a set that can be deleted together.
--
-- Each kept task may require another one to be kept.
--
-- Concurrency: reads only; exact if the caller has locked the set.
create or replace function treadle.without_pinned(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids    uuid[] := p_ids;
  v_pinned uuid[];
begin
  while v_ids <> '{}' loop
    v_pinned := treadle.pinned_tasks(v_ids);
    exit when v_pinned = '{}';
    v_ids := array(
      select given.id from unnest(v_ids) as given (id) where given.id <> all (v_pinned)
    );
  end loop;
  return v_ids;
end;
$$;
