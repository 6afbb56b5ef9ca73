-- lock_tasks: lock tasks in the global order.
--
-- Concurrency: waits for locks.
-- Lock order:  tasks, by id.
-- Ids that do not exist are left out.

create or replace function treadle.lock_tasks(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform tasks.id
  from treadle.tasks
  where tasks.id = any (p_ids)
  order by tasks.id
  for no key update;
end;
$$;

-- dependents_of: return the tasks that still wait for one of these.
--
-- Concurrency: reads only; the next call sees later additions.
create or replace function treadle.dependents_of(p_ids uuid[])
returns uuid[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select
    array(
      select dependencies.task_id
      from treadle.dependencies
      where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
    )
$$;

-- dependencies_of: return the tasks that one of these still waits for.
create or replace function treadle.dependencies_of(p_ids uuid[])
returns uuid[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select
    array(
      select dependencies.depends_on
      from treadle.dependencies
      where dependencies.task_id = any (p_ids) and dependencies.met_at is null
    )
$$;

-- downstream_of: return the given tasks and all tasks that their cancellation would cancel.
--
-- These are dependents over edges that are not optional, and subtasks, recursively.
--
-- Concurrency: reads only; the next call sees later additions.
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

-- affected_tasks: return the tasks that a cancellation of these affects.
--
-- These are the tasks themselves, even if they have ended; the tasks cancelled with them; and the
-- tasks that wait for one of those, also over optional edges.
--
-- Concurrency: reads only; the next call sees later additions.
create or replace function treadle.affected_tasks(p_ids uuid[])
returns uuid[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_cancelled uuid[] := treadle.downstream_of(
    p_ids || array(
      select dependencies.task_id
      from treadle.dependencies
      where
        dependencies.depends_on = any (p_ids)
        and dependencies.met_at is null
        and not dependencies.optional
    )
  );
begin
  return p_ids || v_cancelled || treadle.dependents_of(p_ids || v_cancelled);
end;
$$;

-- lock_affected_tasks: lock all tasks that a cancellation of these affects.
--
-- Returns the tasks that it has locked.
--
-- Concurrency: if the set has grown by the time it is locked, it releases the locks and starts
-- again with the whole set, to keep the lock order.
-- Lock order:  tasks, by id.
create or replace function treadle.lock_affected_tasks(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_affected uuid[] := treadle.affected_tasks(p_ids);
  v_now    uuid[];
begin
  loop
    begin
      perform treadle.lock_tasks(v_affected);
      v_now := treadle.affected_tasks(p_ids);
      if exists (
        select grown.id from unnest(v_now) as grown (id)
        except
        select locked.id from unnest(v_affected) as locked (id)
      ) then
        raise exception using errcode = 'TR999', message = 'a task was added';
      end if;
      return v_affected;
    exception
      when sqlstate 'TR999' then
        v_affected := v_now;
    end;
  end loop;
end;
$$;

-- lock_dags_of: lock the DAGs of some tasks in the global order.
--
-- Concurrency: waits for locks.
-- Lock order:  dags, by id (after tasks).
create or replace function treadle.lock_dags_of(p_tasks uuid[], p_dag uuid default null)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  perform dags.id
  from treadle.dags
  where dags.id = any (
    -- Nulls do no harm here, and a condition against them would make the planner use the wrong
    -- index.
    p_dag || array(select tasks.dag_id from treadle.tasks where tasks.id = any (p_tasks))
  )
  order by dags.id
  for no key update;
end;
$$;

-- lock_downstream: lock all tasks that a cancellation affects, then their DAGs.
--
-- Returns the tasks that would be cancelled, including the given ones.
--
-- Concurrency: see lock_affected_tasks.
-- Lock order:  tasks, dags, each by id.
create or replace function treadle.lock_downstream(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.lock_dags_of(treadle.lock_affected_tasks(p_ids));
  return treadle.downstream_of(p_ids);
end;
$$;

-- has_failure_cascade: return whether the failure of one of these tasks would change others.
create or replace function treadle.has_failure_cascade(p_ids uuid[])
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return exists (
    select from treadle.dependencies
    where
      dependencies.depends_on = any (p_ids)
      and dependencies.met_at is null
      and dependencies.on_dead_letter <> 'wait'
  );
end;
$$;

-- lock_failure_cascade: before attempts fail, lock the tasks that would change if that is final.
--
-- Dependents that wait for a person's decision, which is the default, are not locked.
--
-- Concurrency: if such a dependent was added by the time the tasks are locked, it releases the
-- locks and starts again.
-- Lock order:  tasks, dags, each by id.
create or replace function treadle.lock_failure_cascade(p_ids uuid[], p_cancels boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not p_cancels and not treadle.has_failure_cascade(p_ids) then
    if not exists (
      select from treadle.tasks
      where tasks.id = any (p_ids) and num_nonnulls(tasks.dag_id, tasks.parent_id) > 0
    ) then
      return;
    end if;
    begin
      perform treadle.lock_tasks(p_ids);
      if treadle.has_failure_cascade(p_ids) then
        raise exception using errcode = 'TR999', message = 'a dependent was added';
      end if;
      return;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end if;
  perform treadle.lock_downstream(p_ids);
end;
$$;

-- lock_with_dependents: lock tasks that are about to end, and their dependents, as one ordered set.
--
-- Tasks without dependents, DAG and parent are locked by the update itself: they rarely get a
-- dependent in between, and then satisfy_dependencies locks it.
--
-- Concurrency: if a dependent was added by the time they are locked, it releases the locks and
-- starts again.
-- Lock order:  tasks, by id.
create or replace function treadle.lock_with_dependents(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next uuid[];
begin
  if not exists (
    select from treadle.tasks
    -- Written so that no index on these conditions is used: the rows are found by id.
    where tasks.id = any (p_ids) and num_nonnulls(tasks.dag_id, tasks.parent_id) > 0
  ) and not exists (
    select from treadle.dependencies
    where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
  ) then
    return;
  end if;

  loop
    v_next := treadle.dependents_of(p_ids);
    begin
      perform treadle.lock_tasks(p_ids || v_next);
      if exists (
        select grown.id from unnest(treadle.dependents_of(p_ids)) as grown (id)
        except
        select locked.id from unnest(v_next) as locked (id)
      ) then
        raise exception using errcode = 'TR999', message = 'a dependent was added';
      end if;
      return;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end loop;
end;
$$;

-- lock_whole_dag: lock the open tasks of a DAG, their dependents, and the DAG.
--
-- Once it returns, no task can be added to the DAG until the transaction ends.
--
-- Concurrency: if a task was added before the DAG was locked, it releases the DAG and starts again,
-- so that tasks are locked before DAGs.
-- Lock order:  tasks, dags.
-- Raises:      TR205 unknown DAG.
create or replace function treadle.lock_whole_dag(p_dag uuid)
returns treadle.dags
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_again constant text := 'TR999';
  v_dag    treadle.dags;
  v_live   uuid[];
  v_affected uuid[];
begin
  loop
    v_live := array(
      select tasks.id from treadle.tasks
      where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled')
    );
    v_affected := treadle.lock_affected_tasks(v_live);
    begin
      perform treadle.lock_dags_of(v_affected, p_dag);
      select dags.* into v_dag from treadle.dags where dags.id = p_dag;
      if not found then
        perform treadle.raise_dag_not_found(p_dag);
      end if;
      if exists (
        select tasks.id from treadle.tasks
        where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled')
        except
        select locked.id from unnest(v_live) as locked (id)
      ) then
        raise exception using errcode = c_again, message = 'a task was added';
      end if;
      return v_dag;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end loop;
end;
$$;
