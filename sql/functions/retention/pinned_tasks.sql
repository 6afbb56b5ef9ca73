-- pinned_tasks: those of a set that must stay, if nothing but the set goes.
--
-- A task stays for another that is not of the set: for one that depends on it or refers to it and
-- may still run, for its children, for its parent unless that has completed for good, and for the
-- rest of its DAG. It stays also with a question or money of its own that is open, and until every
-- reader has its events.
--
-- Concurrency: reads; exact where the caller holds the set.

-- wanted_inputs: tasks whose output or file is an input of one that may still run.
--
-- Only of those that have no edge to it: forks, and readers of artifacts. The others are found by
-- their edges.
--
-- Concurrency: reads.
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

-- wanted_origins: tasks whose files the steps of a fork may name that may still run.
--
-- A fork has the steps of what it comes from, also of what that one comes from: so a fork in
-- between stays too, or nobody would know.
--
-- Concurrency: reads.
create or replace function treadle.wanted_origins(p_ids uuid[])
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
    select tasks.forked_from as origin, tasks.id
    from treadle.tasks
    where tasks.forked_from = any (p_ids)
    union
    select heirs.origin, tasks.id
    from heirs
    inner join treadle.tasks on heirs.id = tasks.forked_from
  )

  select array(
    select origins.id
    from heirs
    inner join treadle.tasks as origins on heirs.origin = origins.id
    inner join treadle.tasks as forks on heirs.id = forks.id
    where
      forks.status not in ('completed', 'cancelled')
      and (
        origins.forked_from is not null
        or exists (
          select from treadle.artifacts
          where artifacts.task_id = origins.id and artifacts.status = 'stored'
        )
      )
  )
$$;

-- unread_tasks: those of a set of which a reader of the events has not seen all.
--
-- Filters and templates take what they need from the task and its DAG: both stay until then.
--
-- Concurrency: reads; a reader only ever goes on.
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
  v_read treadle.event_readers := treadle.read_by_all();
begin
  if v_read.name = 'nobody' then
    return '{}';
  end if;
  return array(
    -- By the task first, and then by the place: what nobody has read may be long.
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
      treadle.wanted_inputs(p_ids) || treadle.wanted_origins(p_ids)
      || treadle.unread_tasks(p_ids, v_dags)
    ) as wanted (id)
  );
end;
$$;

-- unpinned: those of a set that may go together, without the ones that must stay.
--
-- Each one that stays may be the reason for another to stay.
--
-- Concurrency: reads; exact where the caller holds the set.
create or replace function treadle.unpinned(p_ids uuid[])
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
