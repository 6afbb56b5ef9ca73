-- lock_tasks: lock tasks in the one order that all of treadle keeps.
--
-- Concurrency: waits for who holds one of them.
-- Lock order:  tasks, by id.
-- Raises:      nothing; ids that do not exist are left out.

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

-- dependents_of: the tasks that still wait for one of these.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
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

-- dependencies_of: the tasks that one of these still waits for.
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

-- downstream_of: all that would fall if these tasks were cancelled, they themselves included.
--
-- Their dependents over edges that are not optional, their subtasks, and so on down.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
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

-- family_of: the tasks that a cancellation of these touches.
--
-- They themselves, also when they have ended; what falls with them; and who waits for one of those,
-- be it over an optional edge.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
create or replace function treadle.family_of(p_ids uuid[])
returns uuid[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_falling uuid[] := treadle.downstream_of(
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
  return p_ids || v_falling || treadle.dependents_of(p_ids || v_falling);
end;
$$;

-- lock_family: lock tasks, all that would fall with them, and who waits for those.
--
-- Returns what it has locked.
--
-- Concurrency: when the family has grown by the time it is locked, it lets go and starts again with
--              all of it, so that the order of locks holds.
-- Lock order:  tasks, by id.
create or replace function treadle.lock_family(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_family uuid[] := treadle.family_of(p_ids);
  v_now    uuid[];
begin
  loop
    begin
      perform treadle.lock_tasks(v_family);
      v_now := treadle.family_of(p_ids);
      if exists (
        select grown.id from unnest(v_now) as grown (id)
        except
        select locked.id from unnest(v_family) as locked (id)
      ) then
        raise exception using errcode = 'TR999', message = 'a task was added';
      end if;
      return v_family;
    exception
      when sqlstate 'TR999' then
        v_family := v_now;
    end;
  end loop;
end;
$$;

-- lock_dags_of: lock the DAGs of some tasks, in the one order that all of treadle keeps.
--
-- Concurrency: waits for who holds one of them.
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
    -- Nulls among them do no harm, and a condition against them would invite the wrong index.
    p_dag || array(select tasks.dag_id from treadle.tasks where tasks.id = any (p_tasks))
  )
  order by dags.id
  for no key update;
end;
$$;

-- lock_downstream: lock all that a cancellation of tasks touches: tasks, then their DAGs.
--
-- Returns those that it would cancel, the tasks themselves included.
--
-- Concurrency: see lock_family.
-- Lock order:  tasks, dags, each by id.
create or replace function treadle.lock_downstream(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.lock_dags_of(treadle.lock_family(p_ids));
  return treadle.downstream_of(p_ids);
end;
$$;

-- has_fallout: whether the failure of one of these tasks moves others.
create or replace function treadle.has_fallout(p_ids uuid[])
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

-- lock_fallout: before attempts fail, lock what falls should that be their end.
--
-- Dependents that wait for a person, which is the default, are left alone.
--
-- Concurrency: when such a dependent has come by the time the tasks are locked, it lets go and
--              starts again.
-- Lock order:  tasks, dags, each by id.
create or replace function treadle.lock_fallout(p_ids uuid[], p_cancels boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not p_cancels and not treadle.has_fallout(p_ids) then
    if not exists (
      select from treadle.tasks
      where tasks.id = any (p_ids) and num_nonnulls(tasks.dag_id, tasks.parent_id) > 0
    ) then
      return;
    end if;
    begin
      perform treadle.lock_tasks(p_ids);
      if treadle.has_fallout(p_ids) then
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

-- lock_with_dependents: lock tasks that are to end, and who waits for them, as one ordered set.
--
-- Tasks that nobody waits for, and that belong to no DAG and no parent, are locked where they are
-- updated: they hardly ever get a dependent in between, and meet_edges locks it then.
--
-- Concurrency: when a dependent has come by the time they are locked, it lets go and starts again.
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
    -- Not as conditions that an index could serve: the ids are to be looked up.
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

-- lock_whole_dag: lock the tasks of a DAG that have not ended, what depends on them, and the DAG.
--
-- Once it returns, nothing is added to the DAG until the transaction ends.
--
-- Concurrency: a task that was added before the DAG was locked makes it let go of the DAG and start
--              again, so that tasks come before DAGs here too.
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
  v_family uuid[];
begin
  loop
    v_live := array(
      select tasks.id from treadle.tasks
      where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled')
    );
    v_family := treadle.lock_family(v_live);
    begin
      perform treadle.lock_dags_of(v_family, p_dag);
      select dags.* into v_dag from treadle.dags where dags.id = p_dag;
      if not found then
        perform treadle.refuse_dag(p_dag);
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
